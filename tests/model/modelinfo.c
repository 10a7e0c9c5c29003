/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sidecars.  Argument: the folder with the shipped models. */
#include <locale.h>
#include <sys/stat.h>

#include "failing_malloc.h"
#include "kit.h"
#include "model/modelinfo.h"
#include "model/onnx.h"

static struct vg_modelinfo *info;
static struct vgk_error error;

static enum vgk_status parse(const char *text, const struct vg_graph *graph)
{
    /* From a block of just its size. */
    size_t n = strlen(text);
    char *exact = malloc(n + !n);
    memcpy(exact, text, n);
    vg_modelinfo_free(&info);
    enum vgk_status status = vg_modelinfo_parse("m.modelinfo", exact, n, graph, &info, &error);
    free(exact);
    return status;
}

static void groups_and_keys(void)
{
    expect(
        parse(
            "\xef\xbb\xbf# a comment\r\n\r\n[ vidgen ]\r\n name = Starry; \r\n;also a comment\n[image]\nranges=0,255\n"
            "[vidgen]\nrange=0;1\nname=Twice = fine\n[vidgen parameter s]\nempty=\nlast=1",
            NULL) == VGK_OK);
    if (!info)
        return;
    expect(!strcmp(vg_modelinfo_text(info, "vidgen", "name"), "Twice = fine"));
    expect(!strcmp(vg_modelinfo_text(info, "vidgen", "range"), "0;1"));
    expect(!strcmp(vg_modelinfo_text(info, "image", "ranges"), "0,255"));
    expect(!strcmp(vg_modelinfo_text(info, "vidgen parameter s", "last"), "1"));
    expect(!strcmp(vg_modelinfo_text(info, "vidgen parameter s", "empty"), ""));
    expect(!vg_modelinfo_text(info, "vidgen", "none") && !vg_modelinfo_text(info, "none", "name"));
}

static void broken_lines(void)
{
    static const struct {
        const char *text, *part;
    } broken[] = {
        { "[vidgen]\n\nname\n", "m.modelinfo:3: expected key=value" },
        { "[vidgen]\n=x\n", "m.modelinfo:2:" },
        { "[vidgen\n", "m.modelinfo:1: expected [group]" },
        { "[]\n", "m.modelinfo:1:" },
        { "[a]b]\n", "m.modelinfo:1:" },
        { "# x\nname=1\n", "m.modelinfo:2: 'name' is in no group" },
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        expectf(parse(broken[i].text, NULL) == VGK_ERR_INVALID && !info && strstr(error.text, broken[i].part), "%s",
                error.text);
    expect(vg_modelinfo_parse("m", "[a]\nb=\0c\n", 9, NULL, &info, &error) == VGK_ERR_INVALID && !info);
    size_t big = VG_MODELINFO_MAX_FILE + 1;
    char *file = malloc(big);
    memset(file, '\n', big);
    expect(vg_modelinfo_parse("m", file, big, NULL, &info, &error) == VGK_ERR_INVALID && strstr(error.text, "1048576"));
    expect(vg_modelinfo_parse("m", file, big - 1, NULL, &info, &error) == VGK_OK);
    free(file);
}

static void lists(void)
{
    double v[4] = { 9, 9, 9, 9 };
    char item[8];
    expect(parse("[a]\nn= 0; 0.5 ,-1e2;\none=3\nwords=x;;1;\nword=ab\nhalf=1;x\nspace=1 2\nnone=\nnan=nan\ntwo=1;;2\n"
                 "l= starry; painted ;a very long one;\n",
                 NULL) == VGK_OK);
    if (!info)
        return;
    expect(vg_modelinfo_numbers(info, "a", "n", v, 4, &error) == 3 && v[0] == 0 && v[1] == 0.5 && v[2] == -100 &&
           v[3] == 9);
    v[1] = 9;
    expect(vg_modelinfo_numbers(info, "a", "n", v, 1, &error) == 3 && v[1] == 9);
    expect(vg_modelinfo_numbers(info, "a", "one", v, 4, NULL) == 1 && v[0] == 3);
    expect(vg_modelinfo_numbers(info, "a", "absent", v, 4, &error) == 0);
    static const char *const bad[] = { "words", "word", "half", "space", "none", "nan", "two" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expectf(vg_modelinfo_numbers(info, "a", bad[i], v, 4, &error) == -1 && strstr(error.text, bad[i]), "%s",
                bad[i]);
    expect(vg_modelinfo_item(info, "a", "l", 0, item, sizeof item) && !strcmp(item, "starry"));
    expect(vg_modelinfo_item(info, "a", "l", 1, item, sizeof item) && !strcmp(item, "painted"));
    expect(vg_modelinfo_item(info, "a", "l", 2, item, sizeof item) && !strcmp(item, "a very "));
    expect(!vg_modelinfo_item(info, "a", "l", 3, item, sizeof item) && !vg_modelinfo_item(info, "a", "x", 0, item, 8));
}

/* Where the process has a decimal comma, files still have a point.  The locale is ours (glibc's format: what localedef
 * makes of `decimal_point ","`), since a bare system has none of that kind. */
static void other_locale(void)
{
    static const char numeric[] =
        "\x14\x11\x03\x20\x06\x00\x00\x00\x20\x00\x00\x00\x22\x00\x00\x00\x23\x00\x00\x00\x24\x00\x00\x00"
        "\x28\x00\x00\x00\x2c\x00\x00\x00\x2c\x00\x00\x00\x2c\x00\x00\x00\x00\x00\x00\x00\x41\x4e\x53\x49"
        "\x5f\x58\x33\x2e\x34\x2d\x31\x39\x36\x38\x00";
    char top[] = "/tmp/vidgen-test-XXXXXX", folder[64], file[80];
    double v = 0;
    expect(mkdtemp(top) && !setenv("LOCPATH", top, 1));
    snprintf(folder, sizeof folder, "%s/comma", top);
    snprintf(file, sizeof file, "%s/LC_NUMERIC", folder);
    mkdir(folder, 0700);
    FILE *f = fopen(file, "wb");
    expect(f && fwrite(numeric, 1, sizeof numeric - 1, f) == sizeof numeric - 1 && !fclose(f));
    if (setlocale(LC_NUMERIC, "comma"))
        expect(strtod("0.5", NULL) == 0 && strtod("0,5", NULL) == 0.5);
    else
        printf("no decimal comma to be had: tried with a point only\n");
    expect(parse("[a]\nn=0.5\n", NULL) == VGK_OK && vg_modelinfo_numbers(info, "a", "n", &v, 1, &error) == 1 &&
           v == 0.5);
    setlocale(LC_NUMERIC, "C");
    remove(file);
    remove(folder);
    remove(top);
}

static void properties(void)
{
    struct vg_property p[] = { { "vidgen.scale", " 2 " }, { "other.name", "x" }, { "vidgen.name", "from the file" } };
    struct vg_graph graph = { .n_properties = 3, .properties = p };
    expect(parse("[vidgen]\nname=from the sidecar\n", &graph) == VGK_OK);
    expect(info && !strcmp(vg_modelinfo_text(info, "vidgen", "scale"), "2"));
    expect(info && !strcmp(vg_modelinfo_text(info, "vidgen", "name"), "from the sidecar"));
    expect(info && !vg_modelinfo_text(info, "other", "name"));
    vg_modelinfo_free(&info);
    expect(vg_modelinfo_load("/nowhere/none.modelinfo", &graph, &info, &error) == VGK_OK);
    expect(info && !strcmp(vg_modelinfo_text(info, "vidgen", "name"), "from the file"));
    vg_modelinfo_free(&info);
    expect(vg_modelinfo_load("/tmp", NULL, &info, &error) == VGK_ERR_FILE && !info);
}

static void no_memory(void)
{
    struct vg_property p = { "vidgen.scale", "2" };
    struct vg_graph graph = { .n_properties = 1, .properties = &p };
    static char text[40000]; /* more than one block of the arena */
    int n = sprintf(text, "[a]\n");
    for (int i = 0; n < (int)sizeof text - 20; i++)
        n += sprintf(text + n, "key%d=1\n", i);
    vg_modelinfo_free(&info);
    long live = fm_live(), at;
    for (at = 1;; at++) {
        fm_fail_at(at);
        enum vgk_status status = vg_modelinfo_parse("m", text, (size_t)n, &graph, &info, &error);
        if (!fm_stop()) {
            expect(status == VGK_OK);
            break;
        }
        expect(status == VGK_ERR_NOMEM && !info && fm_live() == live);
    }
    expect(at > 3);
    vg_modelinfo_free(&info);
    expect(fm_live() == live);
}

static const char *models;

/* The sidecars that ship say what fits their models. */
static void shipped(void)
{
    static const char *const names[] = { "style3", "upscale2x" };
    for (int i = 0; i < 2; i++) {
        char path[512];
        struct vg_graph *graph = NULL;
        snprintf(path, sizeof path, "%s/%s.onnx", models, names[i]);
        expectf(vg_onnx_load(path, &graph, &error) == VGK_OK, "%s", error.text);
        snprintf(path, sizeof path, "%s/%s.modelinfo", models, names[i]);
        expectf(vg_modelinfo_load(path, graph, &info, &error) == VGK_OK, "%s", error.text);
        if (graph && info) {
            double v[3];
            const char *input = vg_modelinfo_text(info, "vidgen", "input");
            expect(input && !strcmp(graph->values[graph->inputs[0]].name, input));
            expect(!strcmp(vg_modelinfo_text(info, "vidgen", "output"), graph->values[graph->outputs[0]].name));
            expect(vg_modelinfo_text(info, "vidgen", "name") &&
                   !strcmp(vg_modelinfo_text(info, "vidgen", "license"), "MIT"));
            expect(vg_modelinfo_numbers(info, "vidgen", "range", v, 3, &error) == 2 && v[0] == 0 && v[1] == 1);
            if (graph->n_inputs > 1) {
                char group[64], label[16];
                snprintf(group, sizeof group, "vidgen parameter %s", graph->values[graph->inputs[1]].name);
                expect(vg_modelinfo_numbers(info, group, "default", v, 3, &error) == 3 && v[0] + v[1] + v[2] == 1);
                expect(vg_modelinfo_item(info, group, "labels", 2, label, sizeof label) && !strcmp(label, "pastel"));
                expect(!vg_modelinfo_item(info, group, "labels", 3, label, sizeof label));
            }
        }
        vg_modelinfo_free(&info);
        vg_graph_free(&graph);
    }
}

int main(int argc, char **argv)
{
    models = argc > 1 ? argv[1] : ".";
    run(groups_and_keys);
    run(broken_lines);
    run(lists);
    run(other_locale);
    run(properties);
    run(no_memory);
    run(shipped);
    vg_modelinfo_free(&info);
    return kit_done();
}
