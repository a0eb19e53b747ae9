/* SPDX-License-Identifier: MIT */

/* Variables of a session: a line for each, below its interpreter's name; or one in full. */

#include <inttypes.h>

#include "excerpt.h"
#include "must.h"
#include "render.h"

typedef struct Variable {
        const char *interpreter, *name, *type;
        JsonBytes text;
        bool truncated;
} Variable;

static const JsonField variable_fields[] = {
        { "interpreter", JSON_KIND_STRING, offsetof(Variable, interpreter), JSON_MANDATORY },
        { "name", JSON_KIND_STRING, offsetof(Variable, name), JSON_MANDATORY },
        { "type", JSON_KIND_STRING, offsetof(Variable, type), JSON_MANDATORY },
        { "text", JSON_KIND_BYTES, offsetof(Variable, text), JSON_MANDATORY },
        { "truncated", JSON_KIND_BOOL, offsetof(Variable, truncated) },
        {}
};

typedef struct Variables {
        json_object *variables, *variable;
        int64_t more;
        const char *notice;
} Variables;

static const JsonField variables_fields[] = {
        { "variables", JSON_KIND_ARRAY, offsetof(Variables, variables) },
        { "variable", JSON_KIND_OBJECT, offsetof(Variables, variable) },
        { "more", JSON_KIND_INT, offsetof(Variables, more) },
        { "notice", JSON_KIND_STRING, offsetof(Variables, notice) },
        {}
};

static void render_list(const ToolCall *call, const Variables *all, Rendering *ret) {
        _cleanup_(buffer_done) Buffer whole = {};
        const char *last = "";
        size_t n = json_object_array_length(all->variables);

        for (size_t i = 0; i < n; i++) {
                json_object *o = json_object_array_get_idx(all->variables, i);
                Variable v = {};
                const char *field;

                if (json_dispatch(o, variable_fields, JSON_UNKNOWN_IGNORE, &v, &field) < 0) {
                        render_malformed(call, field, ret);
                        return;
                }
                if (!streq(v.interpreter, last))
                        emit(&whole, "[%s]\n", v.interpreter);
                last = v.interpreter;
                emit(&whole, "%s (%s): %.*s\n", v.name, v.type, (int) v.text.size, v.text.data);
        }

        if (n == 0)
                emit(&ret->text, "There are no variables. An interpreter that has not run yet has none.\n");
        else
                (void) excerpt_append(&ret->text, buffer_data(&whole), buffer_size(&whole), RENDER_OUTPUT_MAX);
        if (all->more > 0)
                emit(&ret->text, "[%" PRIi64 " more]\n", all->more);
        if (all->notice)
                emit(&ret->text, "[notice: %s]", all->notice);
}

static void render_one(const ToolCall *call, json_object *o, Rendering *ret) {
        Variable v = {};
        const char *field;
        bool cut;

        if (json_dispatch(o, variable_fields, JSON_UNKNOWN_IGNORE, &v, &field) < 0) {
                render_malformed(call, field, ret);
                return;
        }
        cut = excerpt_append(&ret->text, v.text.data, v.text.size, RENDER_OUTPUT_MAX);
        emit(&ret->text, "\n[%s · %s · %s%s]", v.name, v.interpreter, v.type, v.truncated && !cut ? " · cut" : "");
}

void render_variables(const ToolCall *call, json_object *parameters, Rendering *ret) {
        Variables v = {};
        const char *field;

        if (json_dispatch(parameters, variables_fields, JSON_UNKNOWN_IGNORE, &v, &field) < 0)
                render_malformed(call, field, ret);
        else if (v.variable)
                render_one(call, v.variable, ret);
        else if (v.variables)
                render_list(call, &v, ret);
        else
                render_malformed(call, "variables", ret);
}
