/* SPDX-License-Identifier: Apache-2.0 */
/* module/http.h - the functions of struct cairn_api that are about requests and responses;
 * include/cairn.h says what they do. */
#ifndef CN_MODULE_HTTP_H
#define CN_MODULE_HTTP_H
#include "include/cairn.h"

const char *cn_api_request_method(const cairn_event *event);
const char *cn_api_request_url(const cairn_event *event);
const char *cn_api_request_header(const cairn_event *event, const char *name);
size_t cn_api_request_header_count(const cairn_event *event);
const char *cn_api_request_header_at(const cairn_event *event, size_t index, const char **value);
const void *cn_api_request_body(const cairn_event *event, size_t *size);
int cn_api_response_status(cairn_event *event, int status);
int cn_api_response_header(cairn_event *event, const char *name, const char *value);
int cn_api_response_write(cairn_event *event, const void *bytes, size_t size);

#endif
