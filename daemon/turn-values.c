/* SPDX-License-Identifier: MIT */

/* Values of a turn: checked, kept, written into its reply. */

#include "daemon/turn-values.h"

#include "lib/text.h"

static bool has_magic(const char *data, size_t size, const char *magic) {
        return size >= strlen(magic) && memcmp(data, magic, strlen(magic)) == 0;
}

static bool picture_is_valid(AgentValueKind kind, const char *data, size_t size) {
        switch (kind) {
        case AGENT_VALUE_PNG:
                return has_magic(data, size, "\x89PNG\r\n\x1a\n");
        case AGENT_VALUE_JPEG:
                return has_magic(data, size, "\xff\xd8\xff");
        case AGENT_VALUE_SVG:
        case AGENT_VALUE_HTML:
                return size > 0 && utf8_is_valid(data, size, NULL);
        case AGENT_VALUE_RESULT:
        case _AGENT_VALUE_MAX:
        case _AGENT_VALUE_INVALID:
        default:
                return false;
        }
}

static int take_picture(TurnValues *v, AgentValueKind kind, const char *data, size_t size) {
        char *copy;

        if (!picture_is_valid(kind, data, size)) {
                v->bad_pictures++;
                return 0;
        }

        copy = malloc(size);
        if (!copy)
                return -ENOMEM;
        v->pictures[v->n_pictures++] = (TurnPicture){ kind, memcpy(copy, data, size), size };
        return 0;
}

/* The value parsed, so this ends. */
static bool is_deeper_than(json_object *o, size_t depth) {
        if (depth == 0)
                return true;

        if (json_object_is_type(o, json_type_object)) {
                json_object_object_foreach(o, key, member) {
                        (void) key;
                        if (is_deeper_than(member, depth - 1))
                                return true;
                }
        } else if (json_object_is_type(o, json_type_array))
                for (size_t i = 0; i < json_object_array_length(o); i++)
                        if (is_deeper_than(json_object_array_get_idx(o, i), depth - 1))
                                return true;
        return false;
}

/* The last one counts, good or bad. */
static int take_result(TurnValues *v, const char *data, size_t size) {
        _cleanup_json_ json_object *o = NULL;
        const char *text;
        int r;

        v->result = mfree(v->result);
        r = json_parse(data, size, &o, NULL);
        if (r == -ENOMEM)
                return r;
        v->bad_result = r < 0 || is_deeper_than(o, TURN_RESULT_DEPTH_MAX);
        if (v->bad_result)
                return 0;

        text = json_text(o, &v->result_size);
        v->result = text ? strdup(text) : NULL;
        return v->result ? 0 : -ENOMEM;
}

int turn_values_take(TurnValues *v, AgentValueKind kind, const char *data, size_t size) {
        /* The agent keeps to these limits, like to those of output. */
        if (v->n >= AGENT_VALUES_MAX || size > AGENT_VALUES_SIZE - v->size)
                return -EBADMSG;

        v->n++;
        v->size += size;
        return kind == AGENT_VALUE_RESULT ? take_result(v, data, size) : take_picture(v, kind, data, size);
}

int turn_values_take_files(TurnValues *v, const AgentResult *result) {
        if (result->n_out == 0)
                return 0;

        v->files = calloc(result->n_out, sizeof(*v->files));
        if (!v->files)
                return -ENOMEM;
        for (size_t i = 0; i < result->n_out; i++) {
                v->files[i] = (TurnFile){ strdup(result->out[i].name), result->out[i].bytes };
                v->n_files++;
                if (!v->files[i].name)
                        return -ENOMEM;
        }
        return 0;
}

static void write_pictures(const TurnValues *v, JsonWriter *w) {
        json_write_array(w, "pictures");
        for (size_t i = 0; i < v->n_pictures; i++) {
                const TurnPicture *p = &v->pictures[i];

                json_write_object(w, NULL);
                json_write_string(w, "type", agent_value_to_string(p->kind));
                json_write_base64(w, "data", p->data, p->size);
                json_write_object_end(w);
        }
        json_write_array_end(w);
}

static void write_files(const TurnValues *v, JsonWriter *w) {
        json_write_array(w, "outputs");
        for (size_t i = 0; i < v->n_files; i++) {
                char path[sizeof("/workspace/out/") + AGENT_OUT_NAME_MAX];

                (void) stpcpy(stpcpy(path, "/workspace/out/"), v->files[i].name);
                json_write_object(w, NULL);
                json_write_string(w, "path", path);
                json_write_uint(w, "bytes", v->files[i].bytes);
                json_write_object_end(w);
        }
        json_write_array_end(w);
}

void turn_values_write(const TurnValues *v, JsonWriter *w) {
        static const TurnValues none;
        uint64_t images = 0;

        v = v ?: &none;
        for (size_t i = 0; i < v->n_pictures; i++)
                images += v->pictures[i].kind != AGENT_VALUE_HTML;

        json_write_uint(w, "images", images);
        write_pictures(v, w);
        if (v->result)
                json_write_text(w, "result", v->result, v->result_size);
        else
                json_write_null(w, "result");
        write_files(v, w);
}

void turn_values_done(TurnValues *v) {
        for (size_t i = 0; i < v->n_pictures; i++)
                free(v->pictures[i].data);
        for (size_t i = 0; i < v->n_files; i++)
                free(v->files[i].name);
        free(v->files);
        free(v->result);
        *v = (TurnValues){};
}
