#pragma once

// The first n accumulator registers of an array d: as the text of an instruction names them
// (UNTAX_NAMES_n), and as its asm operands (UNTAX_SUMS_n).

#define UNTAX_NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define UNTAX_NAMES_16 UNTAX_NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define UNTAX_NAMES_32                       \
  UNTAX_NAMES_16                             \
  ", %16, %17, %18, %19, %20, %21, %22, %23" \
  ", %24, %25, %26, %27, %28, %29, %30, %31"
#define UNTAX_NAMES_40 UNTAX_NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define UNTAX_NAMES_48 UNTAX_NAMES_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define UNTAX_NAMES_56 UNTAX_NAMES_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define UNTAX_NAMES_60 UNTAX_NAMES_56 ", %56, %57, %58, %59"
#define UNTAX_NAMES_64 UNTAX_NAMES_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define UNTAX_NAMES_72 UNTAX_NAMES_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define UNTAX_NAMES_80 UNTAX_NAMES_72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define UNTAX_NAMES_84 UNTAX_NAMES_80 ", %80, %81, %82, %83"
#define UNTAX_NAMES_88 UNTAX_NAMES_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define UNTAX_NAMES_96 UNTAX_NAMES_88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define UNTAX_NAMES_100 UNTAX_NAMES_96 ", %96, %97, %98, %99"
#define UNTAX_NAMES_112                          \
  UNTAX_NAMES_96                                 \
  ", %96, %97, %98, %99, %100, %101, %102, %103" \
  ", %104, %105, %106, %107, %108, %109, %110, %111"
#define UNTAX_NAMES_128                              \
  UNTAX_NAMES_112                                    \
  ", %112, %113, %114, %115, %116, %117, %118, %119" \
  ", %120, %121, %122, %123, %124, %125, %126, %127"

#define UNTAX_FOUR_AT(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define UNTAX_SUMS_AT(i) UNTAX_FOUR_AT(i), UNTAX_FOUR_AT((i) + 4)
#define UNTAX_SUMS_8 UNTAX_SUMS_AT(0)
#define UNTAX_SUMS_16 UNTAX_SUMS_8, UNTAX_SUMS_AT(8)
#define UNTAX_SUMS_32 UNTAX_SUMS_16, UNTAX_SUMS_AT(16), UNTAX_SUMS_AT(24)
#define UNTAX_SUMS_40 UNTAX_SUMS_32, UNTAX_SUMS_AT(32)
#define UNTAX_SUMS_48 UNTAX_SUMS_40, UNTAX_SUMS_AT(40)
#define UNTAX_SUMS_56 UNTAX_SUMS_48, UNTAX_SUMS_AT(48)
#define UNTAX_SUMS_60 UNTAX_SUMS_56, UNTAX_FOUR_AT(56)
#define UNTAX_SUMS_64 UNTAX_SUMS_56, UNTAX_SUMS_AT(56)
#define UNTAX_SUMS_72 UNTAX_SUMS_64, UNTAX_SUMS_AT(64)
#define UNTAX_SUMS_80 UNTAX_SUMS_72, UNTAX_SUMS_AT(72)
#define UNTAX_SUMS_84 UNTAX_SUMS_80, UNTAX_FOUR_AT(80)
#define UNTAX_SUMS_88 UNTAX_SUMS_80, UNTAX_SUMS_AT(80)
#define UNTAX_SUMS_96 UNTAX_SUMS_88, UNTAX_SUMS_AT(88)
#define UNTAX_SUMS_100 UNTAX_SUMS_96, UNTAX_FOUR_AT(96)
#define UNTAX_SUMS_112 UNTAX_SUMS_96, UNTAX_SUMS_AT(96), UNTAX_SUMS_AT(104)
#define UNTAX_SUMS_128 UNTAX_SUMS_112, UNTAX_SUMS_AT(112), UNTAX_SUMS_AT(120)
