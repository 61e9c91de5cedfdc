// levels: sm_75
// The float16 and bfloat16 kernels of depthwise.cu.
#define WW_HALVES
#include "depthwise.cu"
