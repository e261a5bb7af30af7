/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a cluster's backup: what was written is read again, what was interrupted is no
 * backup, and one that somebody has made up leads nowhere. */
#include "fleet/backup_manifest.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/mem.h"
#include "test/lib/test.h"
#include "text/hex.h"

#define SUM "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void fill(struct cn_manifest *manifest)
{
    *manifest = (struct cn_manifest){.cluster = "c9770efb-74a4-4ba7-9dae-0577c5b037b0",
                                     .node = "a",
                                     .began_ms = 1,
                                     .ended_ms = 2,
                                     .shard_count = 3,
                                     .replicas = 2};
    for (unsigned i = 0; i < 3; i++)
        manifest->shards[i] = (struct cn_manifest_shard){.lsn = 10 + i, .epoch = i, .node = "b"};
}

static void put(struct cn_disk *disk, const char *path, const char *text)
{
    char *folder = cn_strdup(path), *slash = strrchr(folder, '/');
    if (slash) {
        *slash = 0;
        CHECK_INT(0, cn_disk_mkdirs(disk, folder));
    }
    cn_free(folder);
    CHECK_INT(0, cn_disk_replace(disk, path, text, strlen(text)));
}

static int count_entry(void *data, const struct cn_manifest_entry *entry)
{
    struct cn_disk *disk = data;
    struct cn_err err = {0};
    return cn_manifest_take(disk, entry, NULL, NULL, &err);
}

TEST(backup_manifest, is_read_as_it_was_written)
{
    struct cn_disk *disk = cn_disk_system_new(test_dir());
    struct cn_manifest wrote, got;
    struct cn_err err = {0};
    CHECK(!cn_manifest_is_there(disk));
    CHECK_INT(CN_ENOTFOUND, cn_manifest_read(disk, &got, &err));
    CHECK_INT(0, cn_manifest_begin(disk, &err));
    CHECK(cn_manifest_is_there(disk));
    CHECK_INT(CN_EINVALID, cn_manifest_read(disk, &got, &err)); /* I1 */
    CHECK(strstr(err.text, "not whole"));
    put(disk, "cluster.json", "{}");
    put(disk, "shards/0002/log/0000000001.seg", "records");
    put(disk, "shards/0002/LOCK", "");
    put(disk, "blobs/1/ab/ab000000000000000000000000000000", "body");
    put(disk, "deployed/code/x/assets/a b.txt", "asset");
    fill(&wrote);
    CHECK_INT(0, cn_manifest_list(disk, &wrote, NULL, NULL, &err));
    CHECK_INT(5, wrote.file_count);
    CHECK_INT(2 + 7 + 4 + 5, wrote.bytes);
    CHECK_INT(0, cn_manifest_write(disk, &wrote, &err));
    CHECK_INT(0, cn_manifest_read(disk, &got, &err));
    CHECK(memcmp(&wrote, &got, sizeof(got)) == 0);
    CHECK_INT(0, cn_manifest_each(disk, &got, count_entry, disk, &err));
    /* I2 */
    put(disk, "deployed/code/x/assets/a b.txt", "asseT");
    CHECK_INT(CN_ECORRUPT, cn_manifest_each(disk, &got, count_entry, disk, &err));
    put(disk, "deployed/code/x/assets/a b.txt", "asset");
    CHECK_INT(0, cn_disk_unlink(disk, "cluster.json"));
    CHECK_INT(CN_ENOTFOUND, cn_manifest_each(disk, &got, count_entry, disk, &err));
    put(disk, "cluster.json", "{}");
    put(disk, "FILES", "");
    CHECK_INT(CN_ECORRUPT, cn_manifest_each(disk, &got, count_entry, disk, &err));
    cn_disk_system_free(disk);
}

static bool stop_now(void *data)
{
    (void)data;
    return true;
}

TEST(backup_manifest, can_be_given_up_while_files_are_listed)
{
    struct cn_disk *disk = cn_disk_system_new(test_dir());
    struct cn_manifest manifest;
    struct cn_err err = {0};
    fill(&manifest);
    put(disk, "x/cluster.json", "{}");
    CHECK_INT(CN_EABORTED, cn_manifest_list(disk, &manifest, stop_now, NULL, &err));
    cn_disk_system_free(disk);
}

static bool is_good(const char *rest)
{
    struct cn_manifest manifest;
    struct cn_manifest_entry entry;
    char *line = cn_sprintf(SUM " %s", rest);
    fill(&manifest);
    bool good = cn_manifest_entry_parse(line, &manifest, &entry);
    cn_free(line);
    return good;
}

/* I3 */
TEST(backup_manifest, lines_lead_only_to_files_that_a_backup_has)
{
    static const char *const good[] = {"1 cluster.json",
                                       "0 shards/0000/FORMAT",
                                       "1 shards/0002/objects/00000001/ab/cd.db",
                                       "1 blobs/2/ab/ab000000000000000000000000000000",
                                       "1 deployed/versions/x.json",
                                       "1 deployed/code/x/assets/a b.txt"};
    static const char *const bad[] = {"1 ../x",
                                      "1 /etc/passwd",
                                      "1 shards/0000/../../x",
                                      "1 shards/0003/FORMAT",
                                      "1 shards/0/FORMAT",
                                      "1 shards/00000/FORMAT",
                                      "1 shards/0000/DISK",
                                      "1 shards/CLUSTER",
                                      "1 shards/0000/objects/../../../x",
                                      "1 shards/0000//FORMAT",
                                      "1 blobs/3/ab/ab000000000000000000000000000000",
                                      "1 blobs/02/ab/ab000000000000000000000000000000",
                                      "1 blobs/2/ab/../x0000000000000000000000000000",
                                      "1 blobs/2/tmp/ab000000000000000000000000000000",
                                      "1 deployed/key",
                                      "1 deployed/state.json",
                                      "1 deployed/code/../../SECRET",
                                      "1 deployed/code/./x",
                                      "1 FORMAT",
                                      "1 RESTORING",
                                      "1 BACKUP.json",
                                      "1 ",
                                      "1",
                                      "-1 cluster.json",
                                      " 1 cluster.json",
                                      "99999999999999999999 cluster.json",
                                      "18446744073709551615 cluster.json",
                                      "1x cluster.json"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        if (!is_good(good[i]))
            test_fail(__FILE__, __LINE__, "%s is refused", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (is_good(bad[i]))
            test_fail(__FILE__, __LINE__, "%s is taken", bad[i]);
    struct cn_manifest manifest;
    struct cn_manifest_entry entry;
    char no_sum[] = "xyz 1 cluster.json", short_sum[] = "0123 1 cluster.json", nothing[] = "";
    fill(&manifest);
    CHECK(!cn_manifest_entry_parse(no_sum, &manifest, &entry));
    CHECK(!cn_manifest_entry_parse(short_sum, &manifest, &entry));
    CHECK(!cn_manifest_entry_parse(nothing, &manifest, &entry));
}

static int count_line(void *data, const struct cn_manifest_entry *entry)
{
    (void)entry;
    ++*(int *)data;
    return 0;
}

/* FILES of these paths, each of a byte; `more` is added to what the manifest says of them. */
static int list(const char *const *paths, int more_files, int more_bytes, struct cn_err *err)
{
    struct cn_disk *disk = cn_disk_system_new(test_dir());
    struct cn_manifest manifest;
    struct cn_buf text = {0};
    uint8_t digest[EVP_MAX_MD_SIZE];
    int count = 0, seen = 0;
    for (; paths[count]; count++)
        cn_buf_printf(&text, SUM " 1 %s\n", paths[count]);
    fill(&manifest);
    manifest.file_count = (uint64_t)(count + more_files);
    manifest.bytes = (uint64_t)(count + more_bytes);
    CHECK(EVP_Digest(text.data, text.size, digest, NULL, EVP_sha256(), NULL) == 1);
    cn_hex_encode(digest, 32, manifest.files_sum);
    put(disk, CN_MANIFEST_FILES, cn_buf_text(&text));
    int rc = cn_manifest_each(disk, &manifest, count_line, &seen, err);
    CHECK(seen <= count + more_files && (rc < 0 || seen == count));
    cn_buf_fini(&text);
    cn_disk_system_free(disk);
    return rc;
}

/* I4 */
TEST(backup_manifest, has_every_file_once)
{
    struct cn_err err = {0};
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
    const char *const *segments =
        LIST("cluster.json", "deployed/code/a/b", "deployed/code/a-b", "deployed/code/a.txt",
             "deployed/code/\xc3\xa4", "shards/0000/FORMAT");
    CHECK_INT(0, list(segments, 0, 0, &err));
    CHECK_INT(CN_EINVALID, list(segments, 1, 0, &err));
    CHECK_INT(CN_EINVALID, list(segments, -1, 0, &err));
    CHECK_INT(CN_EINVALID, list(segments, 0, 1, &err));
    CHECK_INT(CN_EINVALID, list(segments, 0, -1, &err));
    CHECK_INT(CN_EINVALID, list(LIST("cluster.json", "cluster.json"), 0, 0, &err));
    CHECK(strstr(err.text, "line 2 is not in its place"));
    CHECK_INT(CN_EINVALID,
              list(LIST("cluster.json", "shards/0000/FORMAT", "cluster.json"), 0, 0, &err));
    CHECK_INT(CN_EINVALID, list(LIST("shards/0000/FORMAT"), 0, 0, &err));
    CHECK_STR("FILES does not have cluster.json", err.text);
}

static int parse(const char *members, const char *shards)
{
    struct cn_manifest manifest;
    struct cn_err err = {0};
    char *text =
        cn_sprintf("{\"format\":\"cairn cluster backup\"%s,\"shards\":[%s]}", members, shards);
    int rc = cn_manifest_parse(text, strlen(text), &manifest, &err);
    CHECK(rc == 0 || *err.text);
    cn_free(text);
    return rc;
}

#define MEMBERS(version, count, files)                                                        \
    ",\"version\":" version ",\"cluster\":\"c9770efb-74a4-4ba7-9dae-0577c5b037b0\",\"node\":" \
    "\"a\",\"began_ms\":1,\"ended_ms\":1,\"shard_count\":" count                              \
    ",\"replicas\":2,\"files\":" files ",\"bytes\":1,\"files_sha256\":\"" SUM "\""
#define SHARD(n, lsn) "{\"shard\":" n ",\"lsn\":" lsn ",\"epoch\":1,\"owner\":\"a\"}"

TEST(backup_manifest, that_is_malformed_is_refused)
{
    CHECK_INT(0, parse(MEMBERS("1", "2", "1"), SHARD("0", "1") "," SHARD("1", "0")));
    CHECK_INT(CN_EVERSION, parse(MEMBERS("2", "1", "1"), SHARD("0", "1")));
    CHECK_INT(CN_EINVALID, parse(MEMBERS("1", "2", "1"), SHARD("0", "1")));
    CHECK_INT(CN_EINVALID, parse(MEMBERS("1", "1", "1"), SHARD("0", "1") "," SHARD("1", "1")));
    CHECK_INT(CN_EINVALID, parse(MEMBERS("1", "2", "1"), SHARD("1", "1") "," SHARD("0", "1")));
    CHECK_INT(CN_EINVALID, parse(MEMBERS("1", "2", "1"), SHARD("0", "1") "," SHARD("0", "1")));
    CHECK_INT(CN_EINVALID, parse(MEMBERS("1", "1", "1"), SHARD("0", "-1")));
    CHECK_INT(CN_EINVALID, parse(MEMBERS("1", "1", "1"), SHARD("0", "1.5")));
    CHECK_INT(CN_EINVALID, parse(MEMBERS("1", "1", "1"), "7"));
    CHECK_INT(CN_EINVALID, parse(MEMBERS("1", "0", "1"), ""));
    CHECK_INT(CN_EINVALID, parse(MEMBERS("1", "1025", "1"), ""));
    CHECK_INT(CN_EINVALID, parse(MEMBERS("1", "1", "-1"), SHARD("0", "1")));
    CHECK_INT(CN_EINVALID, parse(MEMBERS("1", "1", "\"1\""), SHARD("0", "1")));
    CHECK_INT(CN_EINVALID, parse(",\"unfinished\":true", ""));
    struct cn_manifest manifest;
    struct cn_err err = {0};
    static const char *const texts[] = {"", "{", "[]", "{}", "null", "{\"format\":\"other\"}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        CHECK(cn_manifest_parse(texts[i], strlen(texts[i]), &manifest, &err) < 0);
}
