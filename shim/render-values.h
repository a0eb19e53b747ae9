/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a turn gave back besides text, for a model: images as content blocks of their own, which editors hand to
 * models that can see; SVG and HTML as text, if they are short; names of files. Pure.
 */

#include "lib/buffer.h"
#include "lib/json.h"

/* Base64 of all images in one reply, which editors keep in their conversation from then on. A plot has some 30 kB. */
#define RENDER_IMAGES_MAX (1 * MIB)
/* Bytes of all SVG and HTML in one reply: models read it like other text. */
#define RENDER_PAGES_MAX (16 * KIB)

typedef struct PicturesShown {
        unsigned shown, hidden;
} PicturesShown;

/* Appends content blocks, with a comma before each. pictures and outputs are those of the API; NULL: none. */
PicturesShown render_pictures(json_object *pictures, Buffer *blocks);
/* Appends a note where pictures are not shown. */
void render_hidden_pictures(Buffer *b, PicturesShown shown);
/* Appends a line that names the files. */
void render_outputs(Buffer *b, json_object *outputs);
