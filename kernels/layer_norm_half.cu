// levels: sm_75 sm_80
// The float16 and bfloat16 kernels of layer_norm.cu.
#define WW_HALVES
#include "layer_norm.cu"
