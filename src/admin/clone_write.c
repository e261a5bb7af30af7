/* SPDX-License-Identifier: Apache-2.0 */
/* admin/clone_write.c - JSON as a stored JavaScript value: docs/reference/structured-clone.md. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "admin/clone.h"
#include "base/buf.h"
#include "base/hexdigit.h"
#include "base/json.h"
#include "base/mem.h"
#include "text/base64.h"
#include "text/clone.h"
#include "text/utf16.h"

static int write_value(struct cn_buf *out, const struct cn_json *json, struct cn_err *err);

static void write_uint(struct cn_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        cn_buf_append_byte(out, (uint8_t)(value | 0x80));
    cn_buf_append_byte(out, (uint8_t)value);
}

static void write_double(struct cn_buf *out, double number)
{
    cn_buf_append(out, &number, sizeof(number));
}

static void write_number(struct cn_buf *out, const struct cn_json *json)
{
    int64_t value = json->integer;
    if (json->kind != CN_JSON_INT || value < INT32_MIN || value > INT32_MAX) {
        cn_buf_append_byte(out, TAG_DOUBLE);
        write_double(out, json->number);
    } else if (value >= SMALL_INT_MIN && value <= SMALL_INT_MAX) {
        cn_buf_append_byte(out, (uint8_t)(TAG_SMALL_INT + value - SMALL_INT_MIN));
    } else {
        cn_buf_append_byte(out, TAG_INT);
        write_uint(out, value < 0 ? (uint64_t)(-value) * 2 - 1 : (uint64_t)value * 2);
    }
}

/* The units of a text, and whether each fits a byte. The caller frees. */
static uint16_t *to_units(const char *text, size_t size, size_t *count, bool *latin1)
{
    uint16_t *units = cn_alloc((size + 1) * sizeof(*units));
    *count = cn_utf16_from_utf8(text, size, units);
    *latin1 = true;
    for (size_t i = 0; i < *count; i++)
        *latin1 = *latin1 && units[i] <= 0xff;
    return units;
}

static void write_units(struct cn_buf *out, const uint16_t *units, size_t count, bool latin1)
{
    for (size_t i = 0; i < count; i++) {
        cn_buf_append_byte(out, (uint8_t)units[i]);
        if (!latin1)
            cn_buf_append_byte(out, (uint8_t)(units[i] >> 8));
    }
}

static void write_text(struct cn_buf *out, const char *text, size_t size)
{
    size_t count;
    bool latin1;
    uint16_t *units = to_units(text, size, &count, &latin1);
    if (latin1 && count <= SHORT_STRING_MAX) {
        cn_buf_append_byte(out, (uint8_t)(TAG_SHORT_STRING + count));
    } else {
        cn_buf_append_byte(out, latin1 ? TAG_LATIN1 : TAG_UTF16);
        write_uint(out, count);
    }
    write_units(out, units, count, latin1);
    cn_free(units);
}

/* A name is written anew each time, which is allowed and only longer. */
static void write_name(struct cn_buf *out, const char *name)
{
    size_t count;
    bool latin1;
    uint16_t *units = to_units(name, strlen(name), &count, &latin1);
    write_uint(out, (uint64_t)count << 2 | (latin1 ? 1 : 2));
    write_units(out, units, count, latin1);
    cn_free(units);
}

static int write_list(struct cn_buf *out, uint8_t tag, const struct cn_json *list,
                      struct cn_err *err)
{
    uint64_t count = 0;
    if (list->kind != CN_JSON_ARRAY)
        return cn_err_set(err, CN_EINVALID, "a list must be an array");
    for (const struct cn_json *each = list->first; each; each = each->next)
        count++;
    cn_buf_append_byte(out, tag);
    write_uint(out, count);
    int rc = 0;
    for (const struct cn_json *each = list->first; each && rc == 0; each = each->next)
        rc = write_value(out, each, err);
    return rc;
}

/* --- what JSON has no word for --------------------------------------------------------------- */

static int write_undefined(struct cn_buf *out, const struct cn_json *json, struct cn_err *err)
{
    (void)json, (void)err;
    cn_buf_append_byte(out, TAG_UNDEFINED);
    return 0;
}

static int write_odd_number(struct cn_buf *out, const struct cn_json *json, struct cn_err *err)
{
    static const struct {
        const char *text;
        double number;
    } numbers[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}, {"-0", -0.0}};
    for (size_t i = 0; json->kind == CN_JSON_STRING && i < 4; i++) {
        if (strcmp(json->text, numbers[i].text) == 0) {
            cn_buf_append_byte(out, TAG_DOUBLE);
            write_double(out, numbers[i].number);
            return 0;
        }
    }
    return cn_err_set(err, CN_EINVALID, "$number must be NaN, Infinity, -Infinity or -0");
}

/* "0x1f", "-0x1f" */
static int write_bigint(struct cn_buf *out, const struct cn_json *json, struct cn_err *err)
{
    const char *text = json->kind == CN_JSON_STRING ? json->text : "";
    bool negative = text[0] == '-';
    const char *digits = text + negative + 2;
    size_t count = strlen(text) > (size_t)negative + 2 ? strlen(digits) : 0;
    bool good = count > 0 && strncmp(text + negative, "0x", 2) == 0;
    for (size_t i = 0; i < count && good; i++)
        good = cn_hexdigit_value((unsigned char)digits[i]) >= 0;
    if (!good)
        return cn_err_set(err, CN_EINVALID, "$bigint must be hexadecimal: 0x1f");
    while (count > 1 && *digits == '0') {
        digits++;
        count--;
    }
    bool zero = count == 1 && *digits == '0';
    size_t size = zero ? 0 : (count + 1) / 2;
    cn_buf_append_byte(out, (uint8_t)(TAG_BIGINT + (negative && !zero)));
    write_uint(out, size);
    for (size_t i = 0; i < size; i++) { /* the lowest first */
        size_t low = count - 1 - 2 * i;
        int high = low > 0 ? cn_hexdigit_value((unsigned char)digits[low - 1]) : 0;
        cn_buf_append_byte(out,
                           (uint8_t)(high << 4 | cn_hexdigit_value((unsigned char)digits[low])));
    }
    return 0;
}

static int write_date(struct cn_buf *out, const struct cn_json *json, struct cn_err *err)
{
    if (json->kind != CN_JSON_INT && json->kind != CN_JSON_NUMBER)
        return cn_err_set(err, CN_EINVALID, "$date must be milliseconds since 1970");
    cn_buf_append_byte(out, TAG_DATE);
    write_double(out, json->number);
    return 0;
}

static int write_map(struct cn_buf *out, const struct cn_json *json, struct cn_err *err)
{
    uint64_t count = 0;
    bool good = json->kind == CN_JSON_ARRAY;
    for (const struct cn_json *pair = json->first; pair && good; pair = pair->next, count++)
        good = pair->kind == CN_JSON_ARRAY && pair->first && pair->first->next &&
               !pair->first->next->next;
    if (!good)
        return cn_err_set(err, CN_EINVALID, "$map must be an array of [key, value]");
    cn_buf_append_byte(out, TAG_MAP);
    write_uint(out, count);
    int rc = 0;
    for (const struct cn_json *pair = json->first; pair && rc == 0; pair = pair->next) {
        rc = write_value(out, pair->first, err);
        if (rc == 0)
            rc = write_value(out, pair->first->next, err);
    }
    return rc;
}

static int write_set(struct cn_buf *out, const struct cn_json *json, struct cn_err *err)
{
    return write_list(out, TAG_SET, json, err);
}

static int write_bytes(struct cn_buf *out, const struct cn_json *json, struct cn_err *err)
{
    struct cn_buf bytes = {0};
    bool good = json->kind == CN_JSON_STRING && cn_base64_decode(&bytes, json->text, json->size);
    cn_buf_append_byte(out, TAG_VIEW_WHOLE);
    cn_buf_append_byte(out, VIEW_UINT8);
    write_uint(out, bytes.size);
    cn_buf_append(out, bytes.data, bytes.size);
    cn_buf_fini(&bytes);
    return good ? 0 : cn_err_set(err, CN_EINVALID, "$bytes must be base64");
}

static int refuse(struct cn_buf *out, const struct cn_json *json, struct cn_err *err)
{
    (void)out;
    return cn_err_set(err, CN_EINVALID, "a value with %s cannot be written", json->name);
}

static const struct {
    const char *name;
    int (*write)(struct cn_buf *out, const struct cn_json *json, struct cn_err *err);
} words[] = {
    {"$undefined", write_undefined},
    {"$number", write_odd_number},
    {"$bigint", write_bigint},
    {"$date", write_date},
    {"$map", write_map},
    {"$set", write_set},
    {"$bytes", write_bytes},
    {"$regexp", refuse},
    {"$error", refuse},
    {"$ref", refuse},
    {"$raw", refuse},
};

static int write_object(struct cn_buf *out, const struct cn_json *json, struct cn_err *err)
{
    const struct cn_json *only = json->first && !json->first->next ? json->first : NULL;
    for (size_t i = 0; only && i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(only->name, words[i].name) == 0)
            return words[i].write(out, only, err);
    }
    cn_buf_append_byte(out, TAG_OBJECT);
    int rc = 0;
    for (const struct cn_json *each = json->first; each && rc == 0; each = each->next) {
        write_name(out, each->name);
        rc = write_value(out, each, err);
    }
    write_uint(out, 0);
    return rc;
}

static int write_value(struct cn_buf *out, const struct cn_json *json, struct cn_err *err)
{
    switch (json->kind) {
    case CN_JSON_NULL:
        cn_buf_append_byte(out, TAG_NULL);
        return 0;
    case CN_JSON_BOOL:
        cn_buf_append_byte(out, (uint8_t)(TAG_FALSE + json->boolean));
        return 0;
    case CN_JSON_INT:
    case CN_JSON_NUMBER:
        write_number(out, json);
        return 0;
    case CN_JSON_STRING:
        write_text(out, json->text, json->size);
        return 0;
    case CN_JSON_ARRAY:
        return write_list(out, TAG_ARRAY, json, err);
    case CN_JSON_OBJECT:
        return write_object(out, json, err);
    }
    return 0;
}

int cn_clone_from_json(struct cn_buf *out, const struct cn_json *json, struct cn_err *err)
{
    cn_buf_append_byte(out, FORMAT_VERSION);
    return write_value(out, json, err);
}
