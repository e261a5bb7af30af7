/* SPDX-License-Identifier: Apache-2.0 */
/* net/curl_lazy.c - libcurl, loaded with the first request that goes out.
 *
 * libcurl brings 23 other libraries (LDAP, Kerberos, SSH...), which would cost every start 4 ms and
 * 3 MB. So the program is not linked with it: the functions that net/ calls are defined here, under
 * their own names, and pass on to the library's. A function used elsewhere in net/ and missing here
 * fails to link. The package is needed as before; without it, a request cannot be made and the
 * program says so and ends.
 *
 * The three functions with "..." take exactly one more argument, a long or a pointer, which the
 * calling conventions of the 64-bit systems pass alike. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

_Static_assert(sizeof(long) == sizeof(void *) && sizeof(curl_off_t) == sizeof(void *),
               "an optional argument is as wide as a pointer");

static void *library;

static void load(void)
{
    library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library)
        return;
    fprintf(stderr, "cairn: libcurl, which outgoing requests need, cannot be loaded: %s\n",
            dlerror());
    abort();
}

static void *find(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    void *function = dlsym(library, name);
    if (function)
        return function;
    fprintf(stderr, "cairn: libcurl has no function %s\n", name);
    abort();
}

/* Finding a function twice at once finds the same one. */
#define FORWARD(type, name, parameters, arguments)      \
    type name parameters                                \
    {                                                   \
        static type(*_Atomic function) parameters;      \
        if (!function)                                  \
            function = (type(*) parameters)find(#name); \
        return function arguments;                      \
    }
#define FORWARD_VOID(name, parameters, arguments)       \
    void name parameters                                \
    {                                                   \
        static void(*_Atomic function) parameters;      \
        if (!function)                                  \
            function = (void(*) parameters)find(#name); \
        function arguments;                             \
    }
#define FORWARD_ONE_MORE(type, name, handle, option)              \
    type name(handle first, option second, ...)                   \
    {                                                             \
        static type (*_Atomic function)(handle, option, ...);     \
        if (!function)                                            \
            function = (type(*)(handle, option, ...))find(#name); \
        va_list list;                                             \
        va_start(list, second);                                   \
        void *third = va_arg(list, void *);                       \
        va_end(list);                                             \
        return function(first, second, third);                    \
    }

FORWARD(CURLcode, curl_global_init, (long flags), (flags))
FORWARD(CURL *, curl_easy_init, (void), ())
FORWARD_VOID(curl_easy_cleanup, (CURL * easy), (easy))
FORWARD(CURLcode, curl_easy_perform, (CURL * easy), (easy))
FORWARD(CURLcode, curl_easy_pause, (CURL * easy, int mask), (easy, mask))
FORWARD(const char *, curl_easy_strerror, (CURLcode code), (code))
FORWARD_ONE_MORE(CURLcode, curl_easy_setopt, CURL *, CURLoption)
FORWARD_ONE_MORE(CURLcode, curl_easy_getinfo, CURL *, CURLINFO)
FORWARD_VOID(curl_free, (void *memory), (memory))
FORWARD(CURLM *, curl_multi_init, (void), ())
FORWARD(CURLMcode, curl_multi_cleanup, (CURLM * multi), (multi))
FORWARD(CURLMcode, curl_multi_add_handle, (CURLM * multi, CURL *easy), (multi, easy))
FORWARD(CURLMcode, curl_multi_remove_handle, (CURLM * multi, CURL *easy), (multi, easy))
FORWARD(CURLMcode, curl_multi_assign, (CURLM * multi, curl_socket_t fd, void *data),
        (multi, fd, data))
FORWARD(CURLMsg *, curl_multi_info_read, (CURLM * multi, int *left), (multi, left))
FORWARD(CURLMcode, curl_multi_socket_action,
        (CURLM * multi, curl_socket_t fd, int events, int *running), (multi, fd, events, running))
FORWARD(const char *, curl_multi_strerror, (CURLMcode code), (code))
FORWARD_ONE_MORE(CURLMcode, curl_multi_setopt, CURLM *, CURLMoption)
FORWARD(struct curl_slist *, curl_slist_append, (struct curl_slist * list, const char *line),
        (list, line))
FORWARD_VOID(curl_slist_free_all, (struct curl_slist * list), (list))
FORWARD(CURLU *, curl_url, (void), ())
FORWARD_VOID(curl_url_cleanup, (CURLU * url), (url))
/* By its name for the linker: versions differ on whether the first parameter is const. */
CURLUcode url_get(const CURLU *url, CURLUPart what, char **part,
                  unsigned flags) __asm__("curl_url_get");
CURLUcode url_get(const CURLU *url, CURLUPart what, char **part, unsigned flags)
{
    CURLUcode (*function)(const CURLU *, CURLUPart, char **, unsigned) = find("curl_url_get");
    return function(url, what, part, flags);
}
FORWARD(CURLUcode, curl_url_set, (CURLU * url, CURLUPart what, const char *part, unsigned flags),
        (url, what, part, flags))
FORWARD(const char *, curl_url_strerror, (CURLUcode code), (code))
