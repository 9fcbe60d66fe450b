#include "sc_main/explore/sweep/store.h"

#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "sc_main/run/exit_code.h"
#include "tests/support/test_folder.h"
#include "waves/output_file.h"

namespace kernbench::sweep {
namespace {

Record good(const std::string& key, double time_ns) {
  Record record;
  record.key = key;
  record.status = Status::ok;
  record.result = {{"sim_time_ps", 5000},
                   {"results", {{{"op", "x"}, {"time_ns", time_ns}, {"used", {{"gemm", 0.5}}}}}}};
  record.finished = "2026-01-01T00:00:00Z";
  return record;
}

void add_good(Store& store, const std::string& key, double time_ns) {
  const Record record = good(key, time_ns);
  store.add({key, "gemm", "kernbench run gemm", "h", "{}"}, record, metrics_of(record.result), {});
}

/// Of all points.
std::string metrics_text(Store& store) {
  return store.database()
      .execAndGet("SELECT group_concat(name || ' ' || value, ', ') FROM (SELECT * FROM metrics ORDER BY key, name)")
      .getString();
}

TEST(Store, KeepsOneRowPerKeyAndReplacesIt) {
  const TestFolder folder;
  Store store(folder.file("s.sqlite"), Store::Mode::write);
  add_good(store, "k", 1);
  add_good(store, "k", 2);
  EXPECT_EQ(store.database().execAndGet("SELECT count(*) FROM points").getInt(), 1);
  EXPECT_EQ(metrics_text(store), "sim_time_ps 5000.0, time_ns 2.0, used.gemm 0.5");
  EXPECT_EQ(store.find("k").value().status, Status::ok);
  EXPECT_FALSE(store.find("other"));
}

TEST(Store, ATransactionThatFailsLeavesNothing) {
  const TestFolder folder;
  Store store(folder.file("s.sqlite"), Store::Mode::write);
  store.database().exec("CREATE TRIGGER full BEFORE INSERT ON objective_values BEGIN SELECT RAISE(ABORT, 'full'); END");
  EXPECT_THROW(store.add({"k", "gemm", "c", "h", "{}"}, good("k", 1), {{"time_ns", 1}}, {{"s", 0, "time", 1}}),
               OutputError);
  EXPECT_FALSE(store.find("k"));
  EXPECT_EQ(metrics_text(store), "");
}

TEST(Store, CanBeReadWhileItIsWritten) {
  const TestFolder folder;
  Store writer(folder.file("s.sqlite"), Store::Mode::write);
  add_good(writer, "a", 1);
  Store reader(folder.file("s.sqlite"), Store::Mode::read);
  {
    SQLite::Transaction writing(writer.database(), SQLite::TransactionBehavior::IMMEDIATE);
    EXPECT_EQ(reader.find("a").value().status, Status::ok);
    writing.commit();
  }
  add_good(writer, "b", 1);
  EXPECT_EQ(reader.find("b").value().status, Status::ok);
}

/// Whatever the other one does meanwhile: it waits, instead of failing where it becomes a writer.
TEST(Store, TwoMayBeOpenedAndWrittenAtOnce) {
  const TestFolder folder;
  const std::string file = folder.file("s.sqlite");
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      try {
        for (int i = 0; i < 5; ++i) {
          Store store(file, Store::Mode::write);
          const std::string key = std::to_string(t) + "-" + std::to_string(i);
          add_good(store, key, 1);
        }
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
        ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Store(file, Store::Mode::read).database().execAndGet("SELECT count(*) FROM points").getInt(), 20);
}

/// Another one that writes into a store, and is done after a moment.
class OtherWriter {
 public:
  explicit OtherWriter(const std::string& file) : database_(file, SQLite::OPEN_READWRITE) {
    database_.exec("BEGIN IMMEDIATE; INSERT INTO configs VALUES ('h', '{}')");
    end_ = std::thread([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      database_.exec("COMMIT");
    });
  }
  ~OtherWriter() { end_.join(); }

 private:
  SQLite::Database database_;
  std::thread end_;
};

/// To share a store its file is needed alone for an instant, which SQLite does not wait for by itself.
TEST(Store, WaitsForWhoeverWritesWhileItIsOpened) {
  const TestFolder folder;
  const std::string file = folder.file("s.sqlite");
  { const Store made(file, Store::Mode::write); }
  const OtherWriter other(file);
  EXPECT_NO_THROW(const Store store(file, Store::Mode::write));
}

/// Who has read already would not wait: what it knows is out of date when the other one is done.
TEST(Store, ASweepThatBeginsWaitsForWhoeverWrites) {
  const TestFolder folder;
  const std::string file = folder.file("s.sqlite");
  Store store(file, Store::Mode::write);
  const OtherWriter other(file);
  SweepFile sweep;
  sweep.name = "s";
  EXPECT_NO_THROW(store.begin(sweep, "sweep", "kernbench sweep"));
}

/// A store is a file that anybody may have changed.
TEST(Store, SaysWhichPointsJsonIsBroken) {
  const TestFolder folder;
  Store store(folder.file("s.sqlite"), Store::Mode::write);
  add_good(store, "k", 1);
  store.database().exec(
      "INSERT INTO sweeps VALUES ('s', 'sweep', 'f', 't', 'grid', 1, 'v', 'b', 'c', '[]', '[]'); "
      "INSERT INTO sweep_points VALUES ('s', 0, 'k', '{}', '{}')");
  EXPECT_EQ(store.json("s").at("points").size(), 1u);
  const auto said = [&](const std::string& statement) {
    store.database().exec(statement);
    try {
      store.csv("s");
    } catch (const OutputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  const std::string before = "cannot read '" + folder.file("s.sqlite") + "': what it has of ";
  EXPECT_EQ(said("UPDATE points SET result = '{broken'"), before + "point k is no JSON (byte 2)");
  EXPECT_EQ(said("UPDATE points SET result = '{}'"), "nothing");
  const std::string deep(100'000, '[');
  EXPECT_EQ(said("UPDATE sweep_points SET coordinates = '" + deep + "'"),
            before + "point k is nested deeper than 100 levels");
  EXPECT_EQ(said("UPDATE sweep_points SET coordinates = '{}'; UPDATE sweeps SET axes = '[5]'"),
            before + "sweep 's' is not what kernbench writes");
}

TEST(Store, IsOnePlainFileWhenItIsClosed) {
  const TestFolder folder;
  { Store store(folder.file("s.sqlite"), Store::Mode::write); }
  EXPECT_FALSE(std::filesystem::exists(folder.file("s.sqlite-wal")));
}

TEST(Store, RefusesAFileThatIsNone) {
  const TestFolder folder;
  std::ofstream(folder.file("text.sqlite")) << "this is a text that is long enough to be no database at all";
  try {
    Store store(folder.file("text.sqlite"), Store::Mode::write);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string(error.what()), "'" + folder.file("text.sqlite") +
                                             "' is no result store\n  hint: give a file that 'kernbench sweep' wrote");
  }
  {
    SQLite::Database other(folder.file("other.sqlite"), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    other.exec("CREATE TABLE t (x)");
  }
  EXPECT_THROW(Store(folder.file("other.sqlite"), Store::Mode::write), UsageError);
}

TEST(Store, SaysWhereItCannotBe) {
  const TestFolder folder;
  try {
    Store store(folder.file("nowhere/s.sqlite"), Store::Mode::write);
    FAIL();
  } catch (const OutputError& error) {
    EXPECT_EQ(std::string(error.what()), "cannot write '" + folder.file("nowhere/s.sqlite") +
                                             "': there is no folder '" + folder.file("nowhere") + "'");
  }
  EXPECT_THROW(Store(folder.file("none.sqlite"), Store::Mode::read), OutputError);
}

TEST(Metrics, OfSeveralRowsAreThoseOfTheLastAndOfEach) {
  const auto metrics = metrics_of({{"results", {{{"time_ns", 1}}, {{"time_ns", 2}}}}});
  EXPECT_EQ(metrics.at("time_ns"), 2);
  EXPECT_EQ(metrics.at("row0.time_ns"), 1);
  EXPECT_EQ(metrics.at("row1.time_ns"), 2);
}

}  // namespace
}  // namespace kernbench::sweep
