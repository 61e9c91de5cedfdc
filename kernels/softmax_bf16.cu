// levels: sm_75 sm_80
// The bfloat16 kernels of softmax.cu.
#define WW_HALVES
#define ELEMENT WwBfloat
#define DTYPE bf16
#include "softmax.cu"
