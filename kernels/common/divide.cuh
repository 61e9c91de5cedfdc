// Division of an index by a size that the host knows: magic = floor((2^64 - 1) / size), size >= 1.
// One multiply-high is off by at most one, for any index; the high word of magic serves 32-bit indices.
#pragma once

WW_DEVICE unsigned ww_divide(unsigned index, unsigned long long size, unsigned long long magic, unsigned& rest) {
    unsigned quotient = __umulhi(index, (unsigned)(magic >> 32));
    rest = index - quotient * (unsigned)size;
    bool more = rest >= (unsigned)size;
    rest -= more ? (unsigned)size : 0u;
    return quotient + more;
}

WW_DEVICE unsigned long long ww_divide(
    unsigned long long index, unsigned long long size, unsigned long long magic, unsigned long long& rest) {
    unsigned long long quotient = __umul64hi(index, magic);
    rest = index - quotient * size;
    bool more = rest >= size;
    rest -= more ? size : 0ull;
    return quotient + more;
}
