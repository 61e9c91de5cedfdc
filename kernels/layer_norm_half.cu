// levels: sm_75
// The float16 and bfloat16 kernels of layer_norm.cu.
#define WW_HALVES
#include "layer_norm.cu"
