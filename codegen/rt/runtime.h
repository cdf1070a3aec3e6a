#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef SELC_RUNTIME_1
#define SELC_RUNTIME_1

/* Integer division and remainder as Python rounds them; b is not zero. */
static inline int64_t selc_i_floordiv(int64_t a, int64_t b) {
    const int64_t q = a / b;
    return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

static inline int64_t selc_i_mod(int64_t a, int64_t b) {
    const int64_t r = (b == -1) ? 0 : a % b;
    return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}

/* Shifts by any amount that is not negative; the caller knows that the result fits. */
static inline int64_t selc_i_shl(int64_t a, int64_t b) {
    return b > 63 ? 0 : (int64_t)((uint64_t)a << b);
}

static inline int64_t selc_i_shr(int64_t a, int64_t b) {
    if (b > 63) return a < 0 ? -1 : 0;
    return a < 0 ? ~(~a >> b) : a >> b;
}

/* a to the power of b >= 0; the caller knows that the result fits. */
static inline int64_t selc_i_pow(int64_t a, int64_t b) {
    uint64_t r = 1;
    int64_t i;
    for (i = 0; i < b; ++i) r *= (uint64_t)a;
    return (int64_t)r;
}

static inline int64_t selc_i_bits(int64_t a) {
    uint64_t x = a < 0 ? (uint64_t)0 - (uint64_t)a : (uint64_t)a;
    int64_t n = 0;
    while (x != 0) {
        x >>= 1;
        ++n;
    }
    return n;
}

/* Equal bits. */
static inline int selc_i_same(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

static inline double selc_i_float32(double a) { return (double)(float)a; }

/* Float division and remainder as Python rounds them; b is not zero. */
static inline double selc_i_fmod(double a, double b) {
    double r = fmod(a, b);
    if (r != 0.0) {
        if ((b < 0.0) != (r < 0.0)) r += b;
    } else {
        r = copysign(0.0, b);
    }
    return r;
}

static inline double selc_i_ffloordiv(double a, double b) {
    double r = fmod(a, b);
    double q = (a - r) / b;
    double f;
    if (r != 0.0 && (b < 0.0) != (r < 0.0)) q -= 1.0;
    if (q == 0.0) return copysign(0.0, a / b);
    f = floor(q);
    if (q - f > 0.5) f += 1.0;
    return f;
}

/* The position of x among n ascending numbers, n if it is not there. */
static inline size_t selc_i_find(const int64_t *a, size_t n, int64_t x) {
    size_t lo = 0;
    size_t hi = n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (a[mid] < x) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return (lo < n && a[lo] == x) ? lo : n;
}

/* Append to a message without ever leaving its room. */
static inline void selc_i_say(char *text, size_t size, size_t *used, const char *form, ...) {
    va_list rest;
    int n;
    if (*used + 1 >= size) return;
    va_start(rest, form);
    n = vsnprintf(text + *used, size - *used, form, rest);
    va_end(rest);
    if (n > 0) *used += (size_t)n;
    if (*used >= size) *used = size - 1;
}

#endif /* SELC_RUNTIME_1 */
