#include "confine/calls.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "which architecture has these numbers?"
#endif

enum { CODE_MAX = 2048, ROW_MAX = 10, TESTS = 2 };

struct program {
    struct sock_filter code[CODE_MAX];
    size_t             n;
};

static void add(struct program *p, struct sock_filter instruction)
{
    assert(p->n < CODE_MAX);
    p->code[p->n++] = instruction;
}

static void add_load(struct program *p, size_t offset)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void add_return(struct program *p, uint32_t action)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* Skips `ahead` instructions unless what was loaded is the value. */
static void add_unless(struct program *p, uint32_t value, size_t ahead)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, (unsigned char)ahead));
}

/* The number is loaded when a row begins, and when it ends without a decision. */
static void add_row(struct program *p, const struct call *c)
{
    size_t tests = 0, left;

    while (tests < TESTS && c->tests[tests].mask)
        tests++;
    left = 3 * tests + 1; /* of the row, behind its first instruction, up to the return */
    add_unless(p, (uint32_t)c->number, left + (tests > 0));
    for (size_t i = 0; i < tests; i++) {
        const struct call_test *t = &c->tests[i];
        /* both machines are little-endian: the low half comes first */
        add_load(p, offsetof(struct seccomp_data, args) + sizeof(uint64_t) * t->argument);
        add(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, t->mask));
        left -= 3;
        add_unless(p, t->value, left);
    }
    add_return(p, SECCOMP_RET_ALLOW);
    if (tests > 0)
        add_load(p, offsetof(struct seccomp_data, nr));
}

int calls_allow(const struct call *calls, size_t n, struct err *e)
{
    struct program    p = {.n = 0};
    struct sock_fprog whole = {.filter = p.code};

    assert(n * ROW_MAX < CODE_MAX);
    add_load(&p, offsetof(struct seccomp_data, arch));
    add(&p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0));
    add_return(&p, SECCOMP_RET_KILL_PROCESS);
    add_load(&p, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < n; i++)
        add_row(&p, &calls[i]);
    add_return(&p, SECCOMP_RET_ERRNO | ENOSYS);
    whole.len = (unsigned short)p.n;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &whole) < 0)
        return err_sys(e, "seccomp");
    return 0;
}
