/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The terminal while top has it: curses draws only what changed, knows every terminal's sequences, and gives
 * the terminal back as it was. The only file that includes curses. There is one terminal, hence no object.
 */

#include "ctl/terminal.h"

/* Keys that are no characters. */
enum {
        SCREEN_KEY_NONE = -1,
        SCREEN_KEY_UP = 0x110000, /* beyond Unicode */
        SCREEN_KEY_DOWN,
        SCREEN_KEY_PAGE_UP,
        SCREEN_KEY_PAGE_DOWN,
        SCREEN_KEY_HOME,
        SCREEN_KEY_END,
        SCREEN_KEY_ENTER,
        SCREEN_KEY_BACKSPACE,
        SCREEN_KEY_ESCAPE,
        SCREEN_KEY_RESIZE,
};

/* -ENOTTY, or -EOPNOTSUPP for a TERM that is not known. Whatever ends the program, exit() leaves the screen. */
int screen_enter(void);
void screen_leave(void);

/* Lends the terminal to something else that talks on it (ssh asks for a password), and takes it back. */
void screen_suspend(void);
void screen_resume(void);

int screen_lines(void);
int screen_columns(void);

/* The next key, without waiting. */
int screen_key(void);

/* Drawing: begin, lines of text (printable already, cut at the edge), end. */
void screen_begin(void);
void screen_line(int line, Style style, bool reversed, const char *text);
/* Changes the look of a part of a line that was drawn. */
void screen_mark(int line, int column, int width, Style style);
/* Where the cursor is shown; nowhere when negative. */
void screen_end(int cursor_line, int cursor_column);
