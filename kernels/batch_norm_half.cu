// levels: sm_75
// The float16 and bfloat16 kernels of batch_norm.cu.
#define WW_HALVES
#include "batch_norm.cu"
