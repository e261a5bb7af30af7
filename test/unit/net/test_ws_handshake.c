/* SPDX-License-Identifier: Apache-2.0 */
/* The opening handshake and the terms of permessage-deflate, without a connection. */
#include "net/ws_handshake.h"

#include <string.h>

#include "net/server.h"
#include "test/lib/test.h"

TEST(ws_handshake, the_key_of_the_rfc_has_the_answer_of_the_rfc)
{
    char accept[CN_WS_ACCEPT_SIZE + 1];
    cn_ws_accept_of("dGhlIHNhbXBsZSBub25jZQ==", 24, accept); /* RFC 6455, 1.3 */
    CHECK_STR("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", accept);
}

TEST(ws_handshake, keys_are_new_each_time_and_well_formed)
{
    char one[CN_WS_KEY_SIZE + 1], two[CN_WS_KEY_SIZE + 1];
    cn_ws_key_new(one);
    cn_ws_key_new(two);
    CHECK_INT(CN_WS_KEY_SIZE, strlen(one));
    CHECK_STR("==", one + 22);
    CHECK(strcmp(one, two) != 0);
}

/* The window that was agreed on, or 0. */
static unsigned chosen(const char *offer)
{
    struct cn_ws_terms terms = {0};
    return cn_ws_offer_choose(offer, strlen(offer), &terms) && terms.deflate ? terms.window_bits
                                                                             : 0;
}

TEST(ws_handshake, the_first_offer_that_can_be_taken_is)
{
    CHECK_INT(15, chosen("permessage-deflate"));
    CHECK_INT(15, chosen("PERMESSAGE-Deflate ; Client_max_window_bits"));
    CHECK_INT(15, chosen("permessage-deflate; client_max_window_bits=10"));
    CHECK_INT(9, chosen("permessage-deflate; server_max_window_bits=9"));
    CHECK_INT(12, chosen("permessage-deflate; server_max_window_bits=\"12\""));
    CHECK_INT(10, chosen("x-other, permessage-deflate; server_max_window_bits=8,"
                         "permessage-deflate; server_max_window_bits=10, permessage-deflate"));
    CHECK_INT(15,
              chosen("permessage-deflate;server_no_context_takeover;client_no_context_takeover"));
}

TEST(ws_handshake, an_offer_that_is_not_understood_is_not_taken)
{
    static const char *const offers[] = {
        "",
        ",",
        "x-webkit-deflate-frame",
        "permessage-deflate; unknown",
        "permessage-deflate; server_max_window_bits",
        "permessage-deflate; server_max_window_bits=",
        "permessage-deflate; server_max_window_bits=7",
        "permessage-deflate; server_max_window_bits=8",
        "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_max_window_bits=09",
        "permessage-deflate; server_max_window_bits=\"",
        "permessage-deflate; client_max_window_bits=x",
        "permessage-deflate; server_no_context_takeover=1",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover"};
    for (size_t i = 0; i < sizeof(offers) / sizeof(offers[0]); i++)
        if (chosen(offers[i]))
            test_fail(__FILE__, __LINE__, "taken: %s", offers[i]);
}

TEST(ws_handshake, our_own_answer_to_an_offer_is_one_that_our_client_takes)
{
    for (unsigned bits = 9; bits <= 15; bits++) {
        struct cn_ws_terms terms = {true, bits}, got;
        char text[200];
        size_t size = cn_ws_offer_answer(&terms, text, sizeof(text));
        CHECK_INT(strlen(text), size);
        CHECK(cn_ws_answer_check(text, size, &got));
        CHECK(got.deflate);
        CHECK_INT(bits < 15, strstr(text, "server_max_window_bits") != NULL);
    }
}

TEST(ws_handshake, a_server_may_not_answer_what_was_not_offered)
{
    static const char *const answers[] = {
        "",
        "permessage-deflate",
        "permessage-deflate; client_no_context_takeover",
        "permessage-deflate; server_no_context_takeover; client_max_window_bits=10",
        "permessage-deflate; server_no_context_takeover, permessage-deflate",
        "x-other",
        "permessage-deflate; server_no_context_takeover; unknown"};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct cn_ws_terms terms;
        if (cn_ws_answer_check(answers[i], strlen(answers[i]), &terms))
            test_fail(__FILE__, __LINE__, "believed: %s", answers[i]);
    }
}
