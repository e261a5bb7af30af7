/* SPDX-License-Identifier: Apache-2.0 */
/* A JavaScriptCore that is laid out otherwise, put between the server and the library by
 * LD_PRELOAD. It works like the library. OTHER_ENGINE says what differs:
 *
 *     lock     a JSLockHolder keeps its VM with some bits turned over
 *     crash    the same class does not survive memory that was filled with a pattern
 *     strings  StringImpl::createWithoutCopyingNonEmpty forgets the last character
 *              (of the text of the proof: the library itself makes its names so) */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TURNED ((uintptr_t)0xff00)
#define PATTERN ((uintptr_t)0x5a5a5a5a)

static int differs(const char *what)
{
    static const char *wanted;
    if (!wanted)
        wanted = getenv("OTHER_ENGINE") ? getenv("OTHER_ENGINE") : "";
    return strcmp(wanted, what) == 0;
}

static void construct(const char *symbol, uintptr_t *self, void *argument)
{
    void (*original)(uintptr_t *, void *);
    *(void **)&original = dlsym(RTLD_NEXT, symbol);
    if (differs("crash") && self[0] == PATTERN)
        abort();
    original(self, argument);
    if (differs("lock"))
        self[0] ^= TURNED;
}

#define CONSTRUCTOR(name, symbol)                               \
    void name(uintptr_t *self, void *argument) __asm__(symbol); \
    void name(uintptr_t *self, void *argument)                  \
    {                                                           \
        construct(symbol, self, argument);                      \
    }
CONSTRUCTOR(of_global, "_ZN3JSC12JSLockHolderC1EPNS_14JSGlobalObjectE")
CONSTRUCTOR(of_vm, "_ZN3JSC12JSLockHolderC1EPNS_2VME")
CONSTRUCTOR(of_vm_reference, "_ZN3JSC12JSLockHolderC1ERNS_2VME")

void destruct(uintptr_t *self) __asm__("_ZN3JSC12JSLockHolderD1Ev");
void destruct(uintptr_t *self)
{
    void (*original)(uintptr_t *);
    *(void **)&original = dlsym(RTLD_NEXT, "_ZN3JSC12JSLockHolderD1Ev");
    if (differs("lock"))
        self[0] ^= TURNED;
    original(self);
}

#define CREATE \
    "_ZN3WTF10StringImpl28createWithoutCopyingNonEmptyESt4spanIKhLm18446744073709551615EE"
void create(void **result, const uint8_t *characters, size_t length) __asm__(CREATE);
void create(void **result, const uint8_t *characters, size_t length)
{
    void (*original)(void **, const uint8_t *, size_t);
    *(void **)&original = dlsym(RTLD_NEXT, CREATE);
    int is_proof = length > 10 && memcmp(characters, "eight bits", 10) == 0;
    original(result, characters, length - (is_proof && differs("strings")));
}
