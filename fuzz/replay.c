/* replay - runs a fuzz target over every file of the directories given, without libFuzzer: the
 * corpus in the tree is part of every test run. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 20 };

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int run_file(const char *dir, const char *name)
{
    autofree char *path = str_format("%s/%s", dir, name), *text = NULL;
    FILE          *file = fopen(path, "re");
    struct err     e = {0};
    size_t         size;
    uint8_t       *input;

    if (!file || fd_read_text(fileno(file), INPUT_MAX, &text, &size, &e) < 0) {
        fprintf(stderr, "replay: %s: %s\n", path, e.msg);
        return -1;
    }
    fclose(file);
    input =
        malloc(size ? size : 1); /* no byte more than the input, so that ASan sees a look past */
    memcpy(input, text, size);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(input, size);
    free(input);
    return 0;
}

int main(int argc, char **argv)
{
    int sum = 0;

    for (int i = 1; i < argc; i++) {
        struct dirent **entries;
        int             n = scandir(argv[i], &entries, is_file, alphasort);

        for (int k = 0; k < n; k++) {
            if (run_file(argv[i], entries[k]->d_name) < 0)
                return 1;
            free(entries[k]);
            sum++;
        }
        if (n >= 0)
            free(entries);
    }
    fprintf(stderr, "%d inputs\n", sum);
    return sum > 0 ? 0 : 1; /* a corpus that is not there tests nothing */
}
