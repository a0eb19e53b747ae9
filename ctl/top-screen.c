/* SPDX-License-Identifier: MIT */

/* A thin layer over curses. */

#include "ctl/top-screen.h"

#include <ncurses.h>
#include <unistd.h>

#include "ctl/table.h"

#define ESCAPE_MSEC 50 /* how long a key's sequence may take after its ESC */

static SCREEN *screen;
static bool is_in;

static void start_colours(void) {
        static const struct {
                Style style;
                short colour;
        } table[] = {
                { STYLE_GOOD, COLOR_GREEN },
                { STYLE_WARN, COLOR_YELLOW },
                { STYLE_BAD,  COLOR_RED   },
                { STYLE_COLD, COLOR_BLUE  },
        };

        if (!terminal_has_colours() || start_color() == ERR || use_default_colors() == ERR)
                return;
        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                (void) init_pair((short) table[i].style, table[i].colour, -1);
}

static attr_t style_attributes(Style style) {
        if (style == STYLE_TITLE)
                return A_BOLD;
        if (style == STYLE_DIM)
                return A_DIM;
        if (style == STYLE_PLAIN || !terminal_has_colours() || !has_colors())
                return A_NORMAL;
        return (attr_t) COLOR_PAIR(style) | (style == STYLE_BAD ? A_BOLD : 0);
}

int screen_enter(void) {
        if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
                return -ENOTTY;
        (void) set_escdelay(ESCAPE_MSEC);
        screen = newterm(NULL, stdout, stdin);
        if (!screen)
                return -EOPNOTSUPP;

        is_in = true;
        (void) atexit(screen_leave);
        (void) cbreak();
        (void) noecho();
        (void) nonl();
        (void) intrflush(stdscr, FALSE);
        (void) keypad(stdscr, TRUE);
        (void) nodelay(stdscr, TRUE);
        start_colours();
        return 0;
}

void screen_leave(void) {
        if (!screen)
                return;
        if (is_in)
                (void) endwin();
        is_in = false;
        delscreen(screen);
        screen = NULL;
}

void screen_suspend(void) {
        (void) endwin();
        is_in = false;
}

void screen_resume(void) {
        is_in = true;
        (void) clearok(stdscr, TRUE); /* whatever was written meanwhile */
        (void) refresh();
}

int screen_lines(void) {
        return getmaxy(stdscr);
}

int screen_columns(void) {
        return getmaxx(stdscr);
}

int screen_key(void) {
        static const struct {
                int curses, ours;
        } table[] = {
                { ERR,           SCREEN_KEY_NONE      },
                { KEY_UP,        SCREEN_KEY_UP        },
                { KEY_DOWN,      SCREEN_KEY_DOWN      },
                { KEY_PPAGE,     SCREEN_KEY_PAGE_UP   },
                { KEY_NPAGE,     SCREEN_KEY_PAGE_DOWN },
                { KEY_HOME,      SCREEN_KEY_HOME      },
                { KEY_END,       SCREEN_KEY_END       },
                { KEY_ENTER,     SCREEN_KEY_ENTER     },
                { '\n',          SCREEN_KEY_ENTER     },
                { '\r',          SCREEN_KEY_ENTER     },
                { KEY_BACKSPACE, SCREEN_KEY_BACKSPACE },
                { '\b',          SCREEN_KEY_BACKSPACE },
                { 0x7F,          SCREEN_KEY_BACKSPACE },
                { 0x1B,          SCREEN_KEY_ESCAPE    },
                { KEY_RESIZE,    SCREEN_KEY_RESIZE    },
        };
        int key = getch();

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (key == table[i].curses)
                        return table[i].ours;
        return key;
}

void screen_begin(void) {
        (void) erase();
}

void screen_line(int line, Style style, bool reversed, const char *text) {
        attr_t attributes = style_attributes(style) | (reversed ? A_REVERSE : 0);
        int columns = screen_columns();

        (void) attrset((int) attributes);
        (void) mvaddnstr(line, 0, text, (int) text_fit(text, columns));
        if (reversed)
                for (int x = text_width(text); x < columns; x++)
                        (void) mvaddch(line, x, ' ');
        (void) attrset(A_NORMAL);
}

void screen_mark(int line, int column, int width, Style style) {
        if (column < screen_columns())
                (void) mvchgat(line, column, width, style_attributes(style) | A_REVERSE | A_BOLD,
                               (short) PAIR_NUMBER(style_attributes(style)), NULL);
}

void screen_end(int cursor_line, int cursor_column) {
        (void) curs_set(cursor_line >= 0);
        if (cursor_line >= 0)
                (void) move(cursor_line, cursor_column);
        (void) refresh();
}
