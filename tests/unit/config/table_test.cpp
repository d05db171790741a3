#include "base/error.hpp"
#include "base/philox.hpp"
#include "config/table.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace {

using namespace soybean;
using config::required;
using config::Table;

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "no error";
}

Table parse(const std::string& text) {
  return Table::parse(text, "m.toml");
}

TEST(Table, ReadsEveryType) {
  const Table table =
      parse("i = 3\nr = 0.5\nwhole = 2\nb = true\ns = \"x\"\nis = [1, 2]\nrs = [1, 2.5]\nss = ['a', 'b']\n"
            "k = 3\nkk = [3, 5]\nt = { i = 7 }\n[[list]]\ni = 1\n[[list]]\ni = 2\n");
  EXPECT_EQ(table.integer("i", required), 3);
  EXPECT_EQ(table.real("r", required), 0.5);
  EXPECT_EQ(table.real("whole", required), 2.0);
  EXPECT_TRUE(table.boolean("b", required));
  EXPECT_EQ(table.text("s", required), "x");
  EXPECT_EQ(table.integers("is", required), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(table.reals("rs", required), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(table.texts("ss", required), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(table.pair("k", required), (std::array<std::int64_t, 2>{3, 3}));
  EXPECT_EQ(table.pair("kk", required), (std::array<std::int64_t, 2>{3, 5}));
  EXPECT_EQ(table.table("t").integer("i", required), 7);
  const std::vector<Table> list = table.tables("list");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1].integer("i", required), 2);
  EXPECT_EQ(list[1].path("i"), "list[1].i");
  EXPECT_NO_THROW(list[0].integer("i", required));
  EXPECT_NO_THROW(table.report_unread());
}

TEST(Table, GivesFallbacksForWhatIsAbsent) {
  const Table table = parse("");
  EXPECT_EQ(table.integer("i", 4), 4);
  EXPECT_EQ(table.real("r", 0.25), 0.25);
  EXPECT_FALSE(table.boolean("b", false));
  EXPECT_EQ(table.text("s", "d"), "d");
  EXPECT_EQ(table.table("section").integer("i", 5), 5);
  EXPECT_FALSE(table.has("i"));
}

TEST(Table, WrongTypesNameFileLineKeyAndValue) {
  const Table table = parse("\n[model]\nlayers = [\n  { channels = \"many\", kernel = [1, 2, 3], alpha = true },\n]\n"
                            "on = 1\nname = 3\nlist = 4\nsizes = [1, 0.5]\nwords = [\"a\", 1]\nwhen = 2024-01-02\n");
  const Table model = table.table("model");
  const Table layer = model.tables("layers")[0];
  EXPECT_EQ(error_of([&] { layer.integer("channels", required); }),
            "m.toml:4: model.layers[0].channels, got \"many\" (string) expected an integer");
  EXPECT_EQ(error_of([&] { layer.pair("kernel", required); }),
            "m.toml:4: model.layers[0].kernel, got [1, 2, 3] (array) expected an integer or a list of two");
  EXPECT_EQ(error_of([&] { layer.real("alpha", required); }),
            "m.toml:4: model.layers[0].alpha, got true (boolean) expected a number");
  EXPECT_EQ(error_of([&] { model.boolean("on", required); }),
            "m.toml:6: model.on, got 1 (integer) expected true or false");
  EXPECT_EQ(error_of([&] { model.text("name", required); }), "m.toml:7: model.name, got 3 (integer) expected a string");
  EXPECT_EQ(error_of([&] { model.integers("list", required); }),
            "m.toml:8: model.list, got 4 (integer) expected a list of integers");
  EXPECT_EQ(error_of([&] { model.integers("sizes", required); }),
            "m.toml:9: model.sizes[1], got 0.5 (number) expected an integer");
  EXPECT_EQ(error_of([&] { model.reals("list", required); }),
            "m.toml:8: model.list, got 4 (integer) expected a list of numbers");
  EXPECT_EQ(error_of([&] { model.reals("words", required); }),
            "m.toml:10: model.words[0], got \"a\" (string) expected a number");
  EXPECT_EQ(error_of([&] { model.texts("words", required); }),
            "m.toml:10: model.words[1], got 1 (integer) expected a string");
  EXPECT_EQ(error_of([&] { model.texts("list", required); }),
            "m.toml:8: model.list, got 4 (integer) expected a list of strings");
  EXPECT_EQ(error_of([&] { model.text("when", required); }),
            "m.toml:11: model.when, got 2024-01-02 (date or time) expected a string");
  EXPECT_EQ(error_of([&] { model.table("list"); }), "m.toml:8: model.list, got 4 (integer) expected a table");
  EXPECT_EQ(error_of([&] { model.tables("list"); }), "m.toml:8: model.list, got 4 (integer) expected a list of tables");
  EXPECT_EQ(error_of([&] { model.tables("words"); }), "m.toml:10: model.words[0], got \"a\" (string) expected a table");
}

TEST(Table, MissingKeysNameTheTablesLine) {
  const Table table = parse("[model]\nlayers = [\n  { op = \"conv2d\", chanels = 3 },\n]\n");
  const Table layer = table.table("model").tables("layers")[0];
  EXPECT_EQ(error_of([&] { layer.integer("channels", required); }),
            "m.toml:3: unknown key model.layers[0].chanels, got 3 (integer) expected a known key. did you mean "
            "\"channels\"?");
  EXPECT_EQ(error_of([&] { table.table("data").text("source", required); }),
            "m.toml: data.source, got nothing expected a string");
}

TEST(Table, WhereAValueIsMissingMisspeltKeysOfItsTableAndOfTheRootAreNamed) {
  const Table table = parse("sede = 1\n[trian]\nsteps = 4\n[data]\nbatch = 3\nsoruce = \"x\"\n");
  table.known({"seed", "train", "data"});
  EXPECT_EQ(error_of([&] { table.table("train").integer("steps", required); }),
            "m.toml:1: unknown key sede, got 1 (integer) expected a known key. did you mean \"seed\"? also unknown: "
            "trian (m.toml:2)");
  const Table data = table.table("data");
  data.known({"source", "batch"});
  EXPECT_EQ(error_of([&] { data.text("source", required); }),
            "m.toml:6: unknown key data.soruce, got \"x\" (string) expected a known key. did you mean \"source\"?");
  EXPECT_EQ(error_of([&] { data.reject("source", "a source"); }),
            "m.toml:6: unknown key data.soruce, got \"x\" (string) expected a known key. did you mean \"source\"?");
}

TEST(Table, WhereAValueIsMissingKeysThatAreKnownOrUnlikeAnyAreNotBlamed) {
  const Table table = parse("[layer]\nop = \"dense\"\ninit = \"x\"\nzzzzzz = 1\n");
  const Table layer = table.table("layer");
  layer.known({"op", "units", "init"});
  EXPECT_EQ(error_of([&] { layer.integer("units", required); }),
            "m.toml:1: layer.units, got nothing expected an integer");
}

TEST(Table, KeysPassedOverCountAsRead) {
  const Table table = parse("a = 1\n");
  table.pass_over("a");
  table.pass_over("absent");
  EXPECT_NO_THROW(table.report_unread());
}

TEST(Table, RangesAreChecked) {
  const Table table =
      parse("low = 0\nhigh = 3000000000\nnan = nan\ninf = -inf\nhuge = 1e300\npair = [0, 1]\nzero = \"a\\u0000b\"\n");
  EXPECT_EQ(error_of([&] { table.integer("low", required, {.low = 1}); }),
            "m.toml:1: low, got 0 (integer) expected at least 1");
  EXPECT_EQ(error_of([&] { table.integer("high", required); }),
            "m.toml:2: high, got 3000000000 (integer) expected at most 2147483647");
  EXPECT_EQ(error_of([&] { table.real("nan", required); }), "m.toml:3: nan, got nan (number) expected a finite number");
  EXPECT_EQ(error_of([&] { table.real("inf", required); }),
            "m.toml:4: inf, got -inf (number) expected a finite number");
  EXPECT_EQ(error_of([&] { table.real("huge", required); }),
            "m.toml:5: huge, got 1e+300 (number) expected a number below 1e+100");
  EXPECT_EQ(error_of([&] { table.pair("pair", required, {.low = 1}); }),
            "m.toml:6: pair[0], got 0 (integer) expected at least 1");
  EXPECT_EQ(error_of([&] { table.text("zero", required); }),
            "m.toml:7: zero, got \"a\\u0000b\" (string) expected a string without zero bytes");
}

TEST(Table, WordsAreCheckedAndLaterOnesRefused) {
  const Table table = parse("a = \"atuo\"\nb = \"cosine\"\nc = \"zzz\"\nd = \"auto\"\n");
  const config::Words words{.now = {"auto", "data"}, .later = {"cosine"}};
  EXPECT_EQ(table.word("d", required, words), "auto");
  EXPECT_EQ(error_of([&] { table.word("a", required, words); }),
            "m.toml:1: a, got \"atuo\" (string) expected one of auto, data. did you mean \"auto\"?");
  EXPECT_EQ(error_of([&] { table.word("b", required, words); }),
            "m.toml:2: b, got \"cosine\" (string) expected one of auto, data. \"cosine\" is not supported yet");
  EXPECT_EQ(error_of([&] { table.word("c", required, words); }),
            "m.toml:3: c, got \"zzz\" (string) expected one of auto, data");
}

TEST(Table, UnreadKeysAreReportedWithTheNearestKnownOne) {
  const Table table = parse("[train]\nstep = 5\nseed = 1\n[modle]\nx = 1\n");
  const Table train = table.table("train");
  EXPECT_EQ(train.integer("steps", 1), 1);
  EXPECT_EQ(train.integer("seed", 1), 1);
  table.table("model");
  EXPECT_EQ(error_of([&] { table.report_unread(); }),
            "m.toml:2: unknown key train.step, got 5 (integer) expected a known key. did you mean \"steps\"? also "
            "unknown: modle (m.toml:4)");
}

TEST(Table, UnreadKeysInsideArraysAndFarFromAnythingKnown) {
  const Table table = parse("layers = [\n  { op = \"relu\" },\n  { op = \"relu\", zzzzzz = 1 },\n]\n");
  for (const Table& layer : table.tables("layers")) {
    layer.text("op", required);
    layer.text("name", "");
  }
  EXPECT_EQ(error_of([&] { table.report_unread(); }),
            "m.toml:3: unknown key layers[1].zzzzzz, got 1 (integer) expected a known key. known here: name, op");
  const Table lone = parse("a = 1\n");
  EXPECT_EQ(error_of([&] { lone.report_unread(); }),
            "m.toml:1: unknown key a, got 1 (integer) expected a known key. nothing is known here");
}

TEST(Table, ManyUnreadKeysStayOnOneShortLine) {
  std::string text;
  for (int i = 0; i < 10; ++i) text += fmt::format("k{} = 1\n", i);
  const std::string error = error_of([&] { parse(text).report_unread(); });
  EXPECT_NE(error.find("also unknown: k1 (m.toml:2), k2 (m.toml:3), k3 (m.toml:4), k4 (m.toml:5), k5 (m.toml:6), …"),
            std::string::npos)
      << error;
}

TEST(Table, SyntaxErrorsAndDuplicatesNameTheLine) {
  EXPECT_EQ(
      error_of([] { parse("a = 1\nb = = 2\n"); }).rfind("m.toml:2: syntax, got \"b = = 2\" expected valid TOML. ", 0),
      0u);
  EXPECT_EQ(error_of([] { parse("a = 1\na = 2\n"); }).rfind("m.toml:2: syntax, got \"a = 2\" expected valid TOML. ", 0),
            0u);
  EXPECT_EQ(error_of([] { parse("a = \xff\n"); }).rfind("m.toml:1: syntax, got ", 0), 0u);
  EXPECT_EQ(error_of([] { parse("a = [1,\n"); }).rfind("m.toml:", 0), 0u);
  std::string dotted = "a";
  for (int i = 0; i < 100000; ++i) dotted += ".a";
  EXPECT_EQ(error_of([&] { parse(fmt::format("\n{} = 1", dotted)); }),
            "m.toml:2: key, got more than 256 parts expected fewer. nest tables less deeply");
  EXPECT_EQ(error_of([] { parse("a = " + std::string(100000, '[')); }).rfind("m.toml:1: syntax, got ", 0), 0u);
}

TEST(Table, NumbersTooLargeForAnythingAreNamed) {
  EXPECT_EQ(error_of([] { parse("a = [1,\n  99999999999999999999]\n"); }),
            "m.toml:2: number, got 99999999999999999999 (too large) expected an integer of at most "
            "9223372036854775807");
  EXPECT_EQ(error_of([] { parse("a = 1e999\n"); }),
            "m.toml:1: number, got 1e999 (too large) expected a number below 1e+100");
  const auto error = [](const std::string& assignment) {
    return error_of([&] {
      Table table = parse("");
      table.apply_override(assignment);
    });
  };
  EXPECT_EQ(error("train.steps=99999999999999999999"),
            "--set train.steps=99999999999999999999: number, got 99999999999999999999 (too large) expected an integer "
            "of at most 9223372036854775807");
  EXPECT_EQ(error("a=-9223372036854775809"),
            "--set a=-9223372036854775809: number, got 9223372036854775809 (too large) expected an integer of at most "
            "9223372036854775807");
  EXPECT_EQ(error("a=[1, 0xFFFFFFFFFFFFFFFFFF]").find("0xFFFFFFFFFFFFFFFFFF (too large)") != std::string::npos, true);
  EXPECT_EQ(error("a=-1e999"), "--set a=-1e999: number, got 1e999 (too large) expected a number below 1e+100");
  EXPECT_EQ(error("a=" + std::string(100, '9')).find(": number, got " + std::string(60, '9') + "… (too large)") !=
                std::string::npos,
            true);
  EXPECT_EQ(error("a=9223372036854775807"), "no error");
  EXPECT_EQ(error("run.dir=99999999999999999999/x"), "no error"); // a word, as its slash shows
}

TEST(Override, CountsWhichCameLater) {
  Table table = parse("a = 1\nb = { c = 1, d = 2 }\ne = 1\n");
  for (const char* text : {"a=2", "b.c=3", "a=4", "f.g=1"}) table.apply_override(text);
  EXPECT_EQ(table.overridden("a"), 3);
  EXPECT_EQ(table.overridden("b"), 2);
  EXPECT_EQ(table.table("b").overridden("d"), 0);
  EXPECT_EQ(table.overridden("e"), 0);
  EXPECT_EQ(table.overridden("f"), 4);
  EXPECT_EQ(table.overridden("absent"), 0);
}

TEST(Override, SetsValuesOfEveryTypeAndMakesTables) {
  Table table = parse("[train]\nepochs = 3\n[model]\nlayers = [{ units = 3 }, { units = 4 }]\n");
  for (const char* text : {"train.epochs=100", "train.optimizer.lr = 5e-4", "parallel.strategy=data",
                           "run.dir=/tmp/a b", "data.shuffle=false", "model.layers[1].units=9", "model.input=[1, 8, 8]",
                           "parallel.pins.\"fc6.weight\"=\"split(0)\"", "run.label='x'", "run.day=2024-01-02"})
    table.apply_override(text);
  EXPECT_EQ(table.table("train").integer("epochs", required), 100);
  EXPECT_TRUE(table.table("train").overridden("epochs"));
  EXPECT_EQ(table.table("train").table("optimizer").real("lr", required), 5e-4);
  EXPECT_EQ(table.table("parallel").text("strategy", required), "data");
  EXPECT_EQ(table.table("run").text("dir", required), "/tmp/a b");
  EXPECT_EQ(table.table("run").text("label", required), "x");
  EXPECT_EQ(table.table("run").text("day", required), "2024-01-02");
  EXPECT_FALSE(table.table("data").boolean("shuffle", required));
  EXPECT_EQ(table.table("model").tables("layers")[1].integer("units", required), 9);
  EXPECT_EQ(table.table("model").integers("input", required), (std::vector<std::int64_t>{1, 8, 8}));
  EXPECT_EQ(table.table("parallel").table("pins").text("fc6.weight", required), "split(0)");
}

TEST(Override, ErrorsNameTheOption) {
  const auto error = [](const std::string& assignment) {
    return error_of([&] {
      Table table = parse("[train]\nseed = 1\nlist = [1]\n");
      table.apply_override(assignment);
      table.table("train").integer("seed", required);
    });
  };
  EXPECT_EQ(error("train.seed=abc"), "--set train.seed=abc: train.seed, got \"abc\" (string) expected an integer");
  EXPECT_EQ(error("train"), "--set train: key, got \"train\" expected key=value. write for example train.steps=100");
  EXPECT_EQ(error("=3"), "--set =3: key, got \"=3\" expected key=value. write for example train.steps=100");
  EXPECT_EQ(error("a..b=3"), "--set a..b=3: key, got \"a..b=3\" expected key=value. write for example train.steps=100");
  EXPECT_EQ(error("train.seed="), "--set train.seed=: value, got nothing expected a TOML value. write key=value");
  EXPECT_EQ(error("train.seed=[1").rfind("--set train.seed=[1: value, got \"[1\" expected a TOML value. ", 0), 0u);
  EXPECT_EQ(error("train.seed.x=1"), "--set train.seed.x=1: train.seed, got 1 (integer) expected a table");
  EXPECT_EQ(
      error("train[0]=1").rfind("--set train[0]=1: train, got { seed = 1, list = [1] } (table) expected an array", 0),
      0u);
  EXPECT_EQ(error("train.list[1]=1"), "--set train.list[1]=1: train.list, got index 1 expected less than 1");
  EXPECT_EQ(error("train.list[x]=1").rfind("--set train.list[x]=1: key, got ", 0), 0u);
  EXPECT_EQ(error("train=1"), "--set train=1: train, got 1 (integer) expected a table");
  std::string deep = "a";
  for (int i = 0; i < 100; ++i) deep += ".a";
  EXPECT_NE(error(deep + "=1").find("key, got more than 64 parts expected fewer"), std::string::npos);
  EXPECT_NE(
      error_of([] { parse("").apply_override("a=1\nb=2"); }).find("value, got several lines expected one TOML value"),
      std::string::npos);
}

TEST(Table, CommentsMayHoldManyDots) {
  EXPECT_NO_THROW(parse("# " + std::string(1000, '.') + "\na = 1\n"));
}

TEST(Override, AnyTextGivesAnErrorAtWorst) {
  const std::vector<std::string> pieces = {"train", "seed", "",    "",      "[",    "0",      "]",  "=", "=",
                                           "'",     "\"",   "{",   "}",     "1",    "-",      "e9", " ", "\n",
                                           "\t",    "#",    "nan", "[[x]]", "\xc3", "layers", ","};
  std::uint64_t draws = 0;
  int accepted = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text;
    for (std::uint64_t n = 1 + philox::bits({1, 2, 3}, draws++) % 10; n > 0; --n)
      text += pieces[philox::bits({1, 2, 3}, draws++) % pieces.size()];
    Table table = parse("[train]\nseed = 1\n[[layers]]\nunits = 3\n");
    try {
      table.apply_override(text);
      ++accepted;
      const std::string written = table.to_toml(); // what was set can be written and read
      EXPECT_EQ(parse(written).to_toml(), written) << text;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(Table, WritesTomlThatReadsBackTheSame) {
  const std::string text = "title = \"a \\\"quoted\\\" \\u0001 one\"\n"
                           "\n"
                           "[model]\n"
                           "input = [3, 4]\n"
                           "layers = [\n"
                           "  { op = \"conv2d\", alpha = 2.0, beta = 5e-07, big = 1e+20 },\n"
                           "  { repeat = 2, layers = [\n"
                           "    { op = \"relu\" },\n"
                           "  ] },\n"
                           "]\n"
                           "\n"
                           "[parallel]\n"
                           "pins = { \"fc6.weight\" = \"split(0)\", a = {} }\n";
  const std::string written = parse(text).to_toml();
  EXPECT_EQ(written, text);
  EXPECT_EQ(parse(written).to_toml(), text);
  EXPECT_EQ(parse(text).table("model").to_toml().rfind("[model]\ninput = [3, 4]\n", 0), 0u);
}

TEST(Nearest, FindsSwapsAndRefusesTheFar) {
  EXPECT_EQ(config::nearest("cnov2d", {"dense", "conv2d"}), "conv2d");
  EXPECT_EQ(config::nearest("momentun", {"momentum", "lr"}), "momentum");
  EXPECT_EQ(config::nearest("xyz", {"momentum", "lr"}), "");
  EXPECT_EQ(config::nearest(std::string(100000, 'a'), {"a"}), "");
}

TEST(ReadFile, RefusesWhatIsNotAReadableFile) {
  const std::string dir = std::filesystem::temp_directory_path().string();
  EXPECT_EQ(error_of([] { config::read_file("/no/such.toml"); }),
            "/no/such.toml: file, got nothing expected a readable file. check the path");
  EXPECT_EQ(error_of([&] { config::read_file(dir); }), dir + ": file, got a directory expected a readable file");
  EXPECT_EQ(error_of([] { config::read_file("/dev/zero"); }),
            "/dev/zero: file, got more than 64 MiB expected a text file");
  const std::string path = dir + "/soybean_table_test.toml";
  std::ofstream(path) << "a = 1\n";
  EXPECT_EQ(config::read_file(path), "a = 1\n");
  std::filesystem::remove(path);
}

} // namespace
