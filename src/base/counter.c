/* SPDX-License-Identifier: Apache-2.0 */
#include "base/counter.h"

const uint64_t cn_histogram_us[CN_HISTOGRAM_BOUNDS] = {
    50,    100,    250,    500,    1000,    2500,    5000,    10000,    25000,
    50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 15000000, 60000000};

const uint64_t cn_histogram_count[CN_HISTOGRAM_BOUNDS] = {
    1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};
