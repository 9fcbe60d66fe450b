// How the tool's memory is allocated: docs/fidelity.md, Speed.

/// jemalloc reads its options here. Huge pages: a machine's state is many times larger than what the TLB reaches with
/// pages of 4 KiB.
extern "C" const char* const malloc_conf = "thp:always,metadata_thp:auto";
