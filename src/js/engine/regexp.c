/* SPDX-License-Identifier: Apache-2.0 */
#include "js/engine/regexp.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "js/context.h"
#include "js/engine/stop.h"
#include "js/vm.h"

#define INTERPRET "_ZN3JSC4Yarr9interpretEPNS0_15BytecodePatternEN3WTF10StringViewEjPj"
#define MATCH "_ZN3JSC6RegExp5matchEPNS_14JSGlobalObjectEN3WTF10StringViewEj"
#define POOL_START "_ZN3JSC36startOfFixedExecutableMemoryPoolImplEv"
#define POOL_END "_ZN3JSC34endOfFixedExecutableMemoryPoolImplEv"

#define NO_MATCH (-1)
#define ASK_INTERPRETER (-2) /* what compiled code returns when it cannot go on */
#define HEARD_MS 2000        /* for the engine to take note that a turn is to end */
#define VARIANTS 4           /* of a pattern's code: 8 and 16 bits, with groups and without */
#define PROOF_LENGTH "60000" /* takes a second or two, if it is not given up */

/* A text as the library passes it: 8 bits wide or 16. */
struct view {
    const void *characters;
    uint64_t length_and_width;
};
typedef int interpret_function(void *pattern, struct view text, unsigned start, unsigned *output);

/* The library's struct Interpreter, of which interpret() has one on its stack. */
struct interpreter {
    void *pattern;
    uint64_t mode;
    unsigned *output;
    const void *characters;
    unsigned at, length;
    uint64_t surrogates;
    void *stack_limit, *pool;
    unsigned start, matches_left;
};
#define PATTERN_FLAGS_AT 8
#define PATTERN_STICKY 0x80
#define INTERPRETER_NEAR 512 /* bytes below the caller's frame */

/* What the thread interprets; NULL: nothing. */
struct interpreting {
    void *pattern;
    struct view text;
    volatile bool given_up;
};

static atomic_bool usable;
static interpret_function *library_interpret;
static const uint8_t *library_match;
static const uint8_t *(*library_bounds[2])(void); /* of the memory for compiled code, */
static const uint8_t *pool_start, *pool_end;      /* which is there with the first VM */
static bool (*is_over)(uint64_t now_mono_ns), (*end_turn)(uint64_t now_mono_ns);
static atomic_uint given_up;
static __thread struct interpreting *volatile interpreting;
static __thread volatile bool left; /* compiled code was, and interpret() has not been called yet */

/* Where things are, in bytes; found by the proof. */
static struct {
    size_t executing;         /* in the VM: the RegExp that is matched */
    size_t code;              /* in that: its code, */
    size_t entries[VARIANTS]; /* and in that: its functions, */
    unsigned known;           /* of which so many are known */
} at;
static volatile int learning = -1; /* the variant that a proof runs */

static int signal_number(void)
{
    return SIGRTMIN + 7;
}

void cn_js_engine_regexp_setup(bool (*is_over_)(uint64_t now_mono_ns),
                               bool (*end)(uint64_t now_mono_ns))
{
    is_over = is_over_;
    end_turn = end;
}

static uint64_t now_ns(void)
{
    return cn_clock_mono_ns(cn_clock_system());
}

unsigned cn_js_engine_matches_given_up(void)
{
    return atomic_load_explicit(&given_up, memory_order_relaxed);
}

void cn_js_engine_give_up_match(pid_t thread)
{
    if (usable && thread)
        (void)syscall(SYS_tgkill, getpid(), thread, signal_number()); /* it may have ended */
}

/* Reads the library's memory, the extent of which is not known here: a page that is_readable() is enough. */
#define READS_UNKNOWN_MEMORY __attribute__((no_sanitize("address")))

READS_UNKNOWN_MEMORY static void *word_at(const void *base, size_t offset)
{
    void *word;
    memcpy(&word, (const char *)base + offset, sizeof(word));
    return word;
}

/* --- compiled code -------------------------------------------------------------------------- */

#if defined(__x86_64__)

static bool is_readable(const void *address)
{
    unsigned char there;
    uintptr_t page = (uintptr_t)address & ~(uintptr_t)4095;
    return page && mincore((void *)page, 4096, &there) == 0;
}

/* How a function begins, and the way out that follows:
 *     push %rbp; mov %rsp,%rbp; SAVE; cmp %edx,%esi; jbe +...; movabs $-1,%rax;
 *     xor %edx,%edx; RESTORE; mov %rbp,%rsp; pop %rbp; ret
 * It saves and restores registers by push and pop (2.50), or makes room for them and moves them
 * there and back (2.52): lea -...(%rbp),%rsp; mov %r13,-...(%rbp); ... */
static const uint8_t head[] = {0x55, 0x48, 0x89, 0xe5};
static const uint8_t test_start[] = {0x39, 0xd6, 0x0f, 0x86};
static const uint8_t no_match[] = {0x48, 0xb8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t clear_end[] = {0x31, 0xd2};
static const uint8_t tail[] = {0x48, 0x89, 0xec, 0x5d, 0xc3};
static const uint8_t make_room[] = {0x48, 0x8d, 0x65}; /* and how many bytes, below zero */
#define PUSH 0x50
#define POP 0x58
#define STORE 0x89
#define LOAD 0x8b
#define POP_FRAME 0x5d
#define RETURN 0xc3
#define SAVED_MAX 5

struct way_out {
    const uint8_t *from; /* where it begins, the result being in %rax */
    const uint8_t *end;  /* behind it: the function's own work */
    unsigned saved_size; /* of the registers that it saves, in bytes below the frame */
};

static bool take(const uint8_t **code, const uint8_t *bytes, size_t size)
{
    if (memcmp(*code, bytes, size) != 0)
        return false;
    *code += size;
    return true;
}

/* One push or pop of a register that a function has to save; 0: it is none. */
static unsigned take_push(const uint8_t **code, unsigned operation)
{
    if (**code == operation + 3) /* rbx */
        return *(*code)++ - operation;
    if (**code == 0x41 && (*code)[1] >= operation + 4 && (*code)[1] <= operation + 7) { /* r12.. */
        *code += 2;
        return (unsigned)((*code)[-1] - operation) + 8;
    }
    return 0;
}

/* The same for a store or load: the register and its place; 0: it is none. */
static unsigned take_move(const uint8_t **code, unsigned operation)
{
    const uint8_t *bytes = *code;
    bool rbx = bytes[0] == 0x48 && bytes[2] == 0x5d;
    bool high = bytes[0] == 0x4c && (bytes[2] & 0xe7) == 0x65; /* r12.. */
    if ((!rbx && !high) || bytes[1] != operation || bytes[3] < 0x80)
        return 0;
    *code += 4;
    return (unsigned)bytes[2] << 8 | bytes[3];
}

static bool find_way_out(const uint8_t *code, struct way_out *out)
{
    unsigned saved[SAVED_MAX], count = 0, one, size = 0;
    if (!take(&code, head, sizeof(head)))
        return false;
    bool moves = take(&code, make_room, sizeof(make_room));
    if (moves)
        size = 256u - *code++;
    while (count < SAVED_MAX && (one = moves ? take_move(&code, STORE) : take_push(&code, PUSH)))
        saved[count++] = one;
    if (!take(&code, test_start, sizeof(test_start)))
        return false;
    code += 4; /* where to */
    if (!take(&code, no_match, sizeof(no_match)))
        return false;
    *out = (struct way_out){.from = code, .saved_size = moves ? size : 8 * count};
    if (!take(&code, clear_end, sizeof(clear_end)))
        return false;
    for (unsigned i = 0; i < count; i++)
        if (moves ? take_move(&code, LOAD) != saved[i]
                  : take_push(&code, POP) != saved[count - 1 - i])
            return false;
    bool whole = take(&code, tail, sizeof(tail));
    out->end = code;
    return whole;
}

static bool is_same_way(const struct way_out *one, const struct way_out *other)
{
    size_t size = (size_t)(one->end - one->from);
    return one->saved_size == other->saved_size && size == (size_t)(other->end - other->from) &&
           memcmp(one->from, other->from, size) == 0;
}

static bool in_pool(const void *address)
{
    return (const uint8_t *)address >= pool_start && (const uint8_t *)address < pool_end;
}

/* The function of `regexp` in which `pc` may be, and its way out. All of them have to restore the
 * same registers: what a function calls may lie behind another one. (X2) */
static bool find_function(void *regexp, const uint8_t *pc, struct way_out *out)
{
    void *code = word_at(regexp, at.code);
    const uint8_t *nearest = NULL;
    struct way_out other = {0};
    for (unsigned i = 0; code && i < at.known; i++) {
        const uint8_t *entry = word_at(code, at.entries[i]);
        struct way_out each;
        if (!in_pool(entry))
            continue;
        if (!find_way_out(entry, &each) || (other.from && !is_same_way(&other, &each)))
            return false;
        other = each;
        if (each.end <= pc && (!nearest || entry > nearest)) {
            nearest = entry;
            *out = each;
        }
    }
    return nearest;
}

/* --- finding out where things are ----------------------------------------------------------- */

/* Where the library's RegExp::match() notes in the VM what it matches: it stores a register there,
 * and later 0. */
static size_t find_executing(const uint8_t *code)
{
    uint32_t stored[16];
    size_t count = 0;
    for (size_t i = 0; i < 2048; i++) {
        const uint8_t *p = code + i;
        uint32_t offset, value;
        bool wide = (p[0] & 0xf8) == 0x48 && (p[2] & 0xc0) == 0x80 && (p[2] & 7) != 4;
        memcpy(&offset, p + 3, sizeof(offset));
        memcpy(&value, p + 7, sizeof(value));
        if (!wide || offset < 4096 || offset > 1 << 20 || offset % 8)
            continue;
        if (p[1] == 0x89 && count < 16)
            stored[count++] = offset;
        for (size_t k = 0; p[1] == 0xc7 && value == 0 && k < count; k++)
            if (stored[k] == offset)
                return offset;
    }
    return 0;
}

/* The function that runs at `pc`, and where its RegExp has it. */
static void learn(void *regexp, const uint8_t *pc)
{
    struct way_out out;
    const uint8_t *entry = (const uint8_t *)((uintptr_t)pc & ~(uintptr_t)31);
    while (in_pool(entry) && pc - entry < 4096 && !find_way_out(entry, &out))
        entry -= 32;
    for (size_t i = 8; in_pool(entry) && i < 96; i += 8) {
        void *code = word_at(regexp, i);
        if ((uintptr_t)code % 8 || !is_readable(code) || !is_readable((char *)code + 128))
            continue;
        for (size_t k = 0; k < 128; k += 8) {
            if (word_at(code, k) != entry || (at.code && at.code != i))
                continue;
            at.code = i;
            at.entries[at.known++] = k;
            return;
        }
    }
}

/* --- the signal ------------------------------------------------------------------------------- */

/* X2, X3 */
static void leave_code(struct cn_js_vm *vm, greg_t *registers)
{
    const uint8_t *pc = (const uint8_t *)registers[REG_RIP];
    uintptr_t frame = (uintptr_t)registers[REG_RBP], top = (uintptr_t)registers[REG_RSP];
    if (!in_pool(pc) || frame < top || frame - top > 65536 || frame % 8)
        return;
    if (in_pool(word_at((void *)frame, 8))) /* a function that compiled code has called */
        return;
    if (*pc == POP_FRAME || *pc == RETURN)
        return;
    void *regexp = word_at(vm->group, at.executing);
    if (!regexp)
        return;
    if (learning == (int)at.known)
        learn(regexp, pc);
    struct way_out out;
    if (!at.code || !find_function(regexp, pc, &out))
        return;
    registers[REG_RIP] = (greg_t)out.from;
    registers[REG_RAX] = ASK_INTERPRETER;
    registers[REG_RSP] = (greg_t)(frame - out.saved_size);
    left = true;
}

#else
static size_t find_executing(const uint8_t *code)
{
    (void)code;
    return 0;
}
#endif

/* X4. The attempt that is under way is the last, and enters no group any more. */
READS_UNKNOWN_MEMORY static void shorten(struct interpreting *now)
{
    uintptr_t from = (uintptr_t)now;
    for (uintptr_t p = from - INTERPRETER_NEAR; p < from; p += 8) {
        struct interpreter *found = (struct interpreter *)p;
        if (found->pattern != now->pattern || found->characters != now->text.characters)
            continue;
        uint16_t *flags = (uint16_t *)((char *)now->pattern + PATTERN_FLAGS_AT);
        *flags |= PATTERN_STICKY;
        found->matches_left = 1;
        now->given_up = true;
    }
}

static void on_signal(int number, siginfo_t *info, void *data)
{
    (void)number, (void)info;
    struct cn_js_vm *vm = cn_js_vm_current();
    struct interpreting *now = interpreting;
    if (!vm || !vm->entered || (learning < 0 && !is_over(now_ns()))) /* X1 */
        return;
    if (now)
        shorten(now);
#if defined(__x86_64__)
    else if (!left)
        leave_code(vm, ((ucontext_t *)data)->uc_mcontext.gregs);
#endif
}

/* --- in place of the interpreter -------------------------------------------------------------- */

/* X1. False: the turn is not to end, or the engine does not say that it knows. */
static bool ends_turn(void)
{
    if (learning >= 0)
        return true;
    struct cn_js_stop_wait wait;
    cn_js_stop_wait_begin(&wait, cn_js_vm_current());
    bool ends = end_turn(now_ns()) && cn_js_stop_wait_end(&wait, HEARD_MS);
    if (!ends)
        cn_js_stop_wait_end(&wait, 0);
    return ends;
}

static int note_given_up(void)
{
    atomic_fetch_add_explicit(&given_up, 1, memory_order_relaxed);
    return NO_MATCH;
}

static int interpret_here(void *pattern, struct view text, unsigned start, unsigned *output)
{
    struct interpreting now = {.pattern = pattern, .text = text};
    uint16_t *flags = (uint16_t *)((char *)pattern + PATTERN_FLAGS_AT), before = *flags;
    interpreting = &now;
    int result = library_interpret(pattern, text, start, output);
    interpreting = NULL;
    *flags = before;
    if (!now.given_up)
        return result;
    /* A turn that is not to end any more has its match from the beginning. */
    return ends_turn() ? note_given_up() : library_interpret(pattern, text, start, output);
}

int cn_js_engine_interpret(void *pattern, struct view text, unsigned start,
                           unsigned *output) __asm__(INTERPRET);
int cn_js_engine_interpret(void *pattern, struct view text, unsigned start, unsigned *output)
{
    CN_ASSERT(library_interpret);
    bool was_left = left;
    left = false;
    if (was_left && ends_turn())
        return note_given_up();
    struct cn_js_vm *vm = cn_js_vm_current();
    if (!usable || !vm || interpreting) /* the engine's own threads match too */
        return library_interpret(pattern, text, start, output);
    return interpret_here(pattern, text, start, output);
}

/* --- the patch ----------------------------------------------------------------------------------
 */

struct pester {
    pthread_t thread;
    pid_t whom;
    atomic_bool stop;
};

static void *pester(void *data)
{
    struct pester *pester = data;
    while (!pester->stop) {
        (void)syscall(SYS_tgkill, getpid(), pester->whom, signal_number());
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    return NULL;
}

/* Whether a match was given up in `source`. */
static bool gives_up(struct cn_js_vm *vm, const char *source, uint64_t budget_ns, bool *cut)
{
    struct cn_js_context context = {.vm = vm, .ref = vm->bare, .budget_ns = budget_ns};
    unsigned before = cn_js_engine_matches_given_up();
    JSStringRef text = JSStringCreateWithUTF8CString(source);
    cn_js_enter(&context);
    JSEvaluateScript(vm->bare, text, NULL, NULL, 1, NULL);
    cn_js_leave(&context);
    JSStringRelease(text);
    *cut = context.cut;
    return cn_js_engine_matches_given_up() > before;
}

#define TEXT "'a'.repeat(" PROOF_LENGTH ")"
static const char *prove_all(struct cn_js_vm *vm)
{
    static const char *const sources[VARIANTS] = {
        "/^a*a*c/.test(" TEXT ")",
        "/^(a*)a*c/.exec(" TEXT ")",
        "/^\\u0100a*a*c/.test('\\u0100' + " TEXT ")",
        "/^\\u0100(a*)a*c/.exec('\\u0100' + " TEXT ")",
    };
    bool cut, all = true;
    for (learning = 0; learning < VARIANTS && all; learning++)
        all = gives_up(vm, sources[learning], 0, &cut);
    learning = all ? VARIANTS : learning;
    bool interpreted = all && gives_up(vm, "/(?<!b)a*c/.exec(" TEXT ")", 0, &cut);
    learning = -1;
    if (!all)
        return "compiled code is not left";
    if (!interpreted)
        return "the interpreter does not come to its end";
    if (word_at(vm->group, at.executing))
        return "the VM does not say what it matches";
    if (!gives_up(vm, "/^a*a*c/.test(" TEXT ")", 1000000, &cut) || !cut)
        return "the turn of a match that was given up goes on";
    return NULL;
}

static const char *prove(struct cn_js_vm *vm)
{
    pool_start = library_bounds[0]();
    pool_end = library_bounds[1]();
    at.executing = find_executing(library_match);
    if (!at.executing)
        return "the library is not built as expected";
    struct pester one = {.whom = (pid_t)syscall(SYS_gettid)};
    if (pthread_create(&one.thread, NULL, pester, &one) != 0)
        return "no thread for the proof";
    const char *wrong = prove_all(vm);
    one.stop = true;
    pthread_join(one.thread, NULL);
    return wrong;
}

static void found(void *const functions[])
{
    *(void **)&library_interpret = functions[0];
    library_match = functions[1];
    memcpy(library_bounds, functions + 2, sizeof(library_bounds));
}

static void use(bool on)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&action.sa_mask);
    if (on)
        (void)sigaction(signal_number(), &action, NULL); /* a known number: it cannot fail */
    usable = on; /* a signal that is on its way is still taken */
}

const struct cn_js_patch cn_js_patch_regexp = {
    .name = "regexp",
    .replaces = "Yarr::interpret, and what compiled regular expressions return when a signal comes",
    .why =
        "a match that takes time with the square of its text holds its lane, and nothing ends it",
    .gain = "no CPU; the turn ends in time, and the server does not start itself anew",
    .without = "a match that takes too long ends with the server's restart of itself (stuck_ms)",
    .needs = "clock",
    .symbols = {INTERPRET, MATCH, POOL_START, POOL_END},
    .found = found,
    .use = use,
    .prove = prove,
};
