// levels: sm_75 sm_80
// The float16 kernels of softmax.cu.
#define WW_HALVES
#define ELEMENT WwHalf
#define DTYPE f16
#include "softmax.cu"
