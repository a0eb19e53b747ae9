/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The varlink wire format (https://varlink.org/Method-Call): NUL-terminated JSON objects on a stream socket.
 * Pure: parsing of calls and replies, and their text. libsystemd has sd_varlink only from 257 and we build
 * on 252, so this is our own; names and signatures stay close to it for a later swap.
 */

#include "buffer.h"
#include "json.h"

/* Largest message either side accepts or sends, without its NUL. */
#define VARLINK_MESSAGE_MAX (8 * MIB)

#define VARLINK_ERROR_INTERFACE_NOT_FOUND "org.varlink.service.InterfaceNotFound"
#define VARLINK_ERROR_METHOD_NOT_FOUND "org.varlink.service.MethodNotFound"
#define VARLINK_ERROR_METHOD_NOT_IMPLEMENTED "org.varlink.service.MethodNotImplemented"
#define VARLINK_ERROR_INVALID_PARAMETER "org.varlink.service.InvalidParameter"
#define VARLINK_ERROR_EXPECTED_MORE "org.varlink.service.ExpectedMore"

typedef enum VarlinkFlags {
        VARLINK_MORE = 1 << 0,          /* call: several replies are wanted */
        VARLINK_ONEWAY = 1 << 1,        /* call: no reply is wanted */
        VARLINK_CONTINUES = 1 << 2,     /* reply: more will follow */
} VarlinkFlags;

typedef struct VarlinkCall {
        json_object *message;           /* owned; the members below borrow from it */
        const char *method;
        json_object *parameters;        /* never NULL after parsing: an empty object where it was left out */
        VarlinkFlags flags;
} VarlinkCall;

typedef struct VarlinkReply {
        json_object *message;
        const char *error;              /* NULL for success */
        json_object *parameters;        /* may be NULL */
        VarlinkFlags flags;
} VarlinkReply;

/* -EBADMSG for anything that is not a call or reply object. */
int varlink_call_parse(const char *data, size_t size, VarlinkCall *ret);
void varlink_call_done(VarlinkCall *c);
int varlink_reply_parse(const char *data, size_t size, VarlinkReply *ret);
void varlink_reply_done(VarlinkReply *r);

/* Append a message with its NUL, or nothing. parameters is borrowed and may be NULL. -EMSGSIZE over
 * VARLINK_MESSAGE_MAX; -EINVAL for a method or error name that cannot be one. */
int varlink_call_append(Buffer *b, const char *method, json_object *parameters, VarlinkFlags flags);
int varlink_reply_append(Buffer *b, json_object *parameters, VarlinkFlags flags);
int varlink_reply_append_text(Buffer *b, const char *parameters, size_t size, VarlinkFlags flags);
int varlink_error_append(Buffer *b, const char *error, json_object *parameters);
