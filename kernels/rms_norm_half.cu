// levels: sm_75 sm_80
// The float16 and bfloat16 kernels of rms_norm.cu.
#define WW_HALVES
#include "rms_norm.cu"
