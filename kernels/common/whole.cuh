// Whole numbers of any size, by the code of their type: bytes of an element, 16 with a sign, 32 for truth. They are held in
// 64 bits, those of an int64 where they have a sign.
#pragma once

enum : unsigned { WW_BYTES = 15, WW_SIGNED = 16, WW_TRUTH = 32 };

WW_DEVICE unsigned long long ww_load_whole(const void* x, unsigned long long i, unsigned code) {
    const bool sign = code & WW_SIGNED;
    unsigned long long value;
    switch (code & WW_BYTES) {
        case 1: value = sign ? (unsigned long long)(long long)((const signed char*)x)[i] : ((const unsigned char*)x)[i]; break;
        case 2: value = sign ? (unsigned long long)(long long)((const short*)x)[i] : ((const unsigned short*)x)[i]; break;
        case 4: value = sign ? (unsigned long long)(long long)((const int*)x)[i] : ((const unsigned*)x)[i]; break;
        default: value = ((const unsigned long long*)x)[i];
    }
    return code & WW_TRUTH ? value != 0 : value;
}

WW_DEVICE void ww_store_whole(void* y, unsigned long long i, unsigned long long value, unsigned code) {
    switch (code & WW_BYTES) {
        case 1: ((unsigned char*)y)[i] = (unsigned char)value; break;
        case 2: ((unsigned short*)y)[i] = (unsigned short)value; break;
        case 4: ((unsigned*)y)[i] = (unsigned)value; break;
        default: ((unsigned long long*)y)[i] = value;
    }
}

// What bits are ordered by.
WW_DEVICE unsigned long long ww_order_whole(unsigned long long value, unsigned code) {
    return code & WW_SIGNED ? value ^ 1ull << 63 : value;
}
