#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sc_main/explore/report/store_study.h"
#include "tests/support/test_folder.h"

namespace kernbench::report {
namespace {

/// A store of two axes and two objectives, one sweep and one search, written row by row.
class StoreStudy : public ::testing::Test {
 protected:
  StoreStudy() : database(folder.file("store.sqlite"), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE) {
    database.exec(R"(
      CREATE TABLE points(key TEXT PRIMARY KEY, status TEXT, exit_code INTEGER, error TEXT, command TEXT,
                          config_hash TEXT, result TEXT);
      CREATE TABLE configs(hash TEXT PRIMARY KEY, config TEXT);
      CREATE TABLE metrics(key TEXT, name TEXT, value REAL, PRIMARY KEY(key, name));
      CREATE TABLE sweeps(name TEXT PRIMARY KEY, kind TEXT, text TEXT, version TEXT, base TEXT, axes TEXT,
                          objectives TEXT);
      CREATE TABLE sweep_points(sweep TEXT, position INTEGER, key TEXT, coordinates TEXT,
                                PRIMARY KEY(sweep, position));
      CREATE TABLE objective_values(sweep TEXT, position INTEGER, name TEXT, value REAL,
                                    PRIMARY KEY(sweep, position, name));
      INSERT INTO configs VALUES('c1', '{"ucie": {"bandwidth": "64 GB/s"}}');
      INSERT INTO points VALUES('k1', 'ok', 0, NULL, 'kernbench run x', 'c1', '{"results": [
        {"algorithm": "ring", "mapping": "m", "limited_by": "links"},
        {"algorithm": "tree", "mapping": "m", "limited_by": "latency"}], "energy": [
        {"component": "pe", "dynamic_pj": 3, "static_pj": 4, "operations": [
          {"operation": "pe.energy.mac_16bit", "unit": "MAC", "count": 8, "pj_each": 0.375, "dynamic_pj": 3}]},
        {"component": "hbm", "dynamic_pj": 1, "static_pj": 2, "operations": []}]}'),
                               ('k2', 'ok', 0, NULL, 'kernbench run y', 'c1', '{"results": [{"algorithm": "ring", "mapping": "m", "limited_by": "links"}], "energy": [
        {"component": "hbm", "dynamic_pj": 5, "static_pj": 6, "operations": [
          {"operation": "cube.hbm.energy_per_bit", "unit": "bit", "count": 2, "pj_each": 2.5, "dynamic_pj": 5}]}]}'),
                               ('k3', 'failed', 3, 'deadlock', 'kernbench run z', NULL, NULL);
      INSERT INTO metrics VALUES('k1', 'time_ns', 10), ('k2', 'time_ns', 20), ('k1', 'ranks', 4), ('k2', 'ranks', 4),
                                ('k1', 'energy_pj', 5), ('k2', 'energy_pj', 6);
    )");
    const std::string axes = R"([{"name": "rate", "kind": "list", "log": true, "numeric": true, "unit": "B/s",
      "values": [{"label": "64 GB/s", "number": 6.4e10}]}, {"name": "algorithm", "kind": "list", "numeric": false,
      "unit": "", "values": [{"label": "tree", "number": null}, {"label": "ring", "number": null}]}])";
    const std::string objectives = R"([{"name": "time_ns", "goal": "minimize", "unit": "ns"},
      {"name": "rating", "goal": "maximize", "unit": ""}])";
    for (const std::string kind : {"sweep", "search"}) {
      SQLite::Statement insert(database, "INSERT INTO sweeps VALUES(?, ?, 'the file', '1.2.3', 'the base', ?, ?)");
      insert.bind(1, kind == "sweep" ? "grid" : "grid/nsga2-1");
      insert.bind(2, kind);
      insert.bind(3, axes);
      insert.bind(4, objectives);
      insert.exec();
    }
    database.exec(R"(
      INSERT INTO sweep_points VALUES
        ('grid', 0, 'k1', '{"rate": {"label": "64 GB/s", "number": 6.4e10}, "algorithm": {"label": "ring", "number": null}}'),
        ('grid', 4, 'k2', '{"rate": {"label": "128 GB/s", "number": 1.28e11}, "algorithm": {"label": "tree", "number": null}}'),
        ('grid', 5, 'k3', '{"rate": {"label": "128 GB/s", "number": 1.28e11}, "algorithm": {"label": "ring", "number": null}}'),
        ('grid', 6, 'k4', '{"rate": {"label": "256 GB/s", "number": 2.56e11}, "algorithm": {"label": "ring", "number": null}}');
      INSERT INTO objective_values VALUES('grid', 0, 'time_ns', 10), ('grid', 0, 'rating', 1), ('grid', 4, 'time_ns', 20),
                                         ('grid', 4, 'rating', 3);
    )");
  }
  TestFolder folder;
  SQLite::Database database;
};

TEST_F(StoreStudy, WhatResultsSayInWordsIsAColumnIfItDiffersAndIsNoAxis) {
  const Study study = read_study(database, "grid");
  EXPECT_EQ(study.texts, std::vector<std::string>{"limited_by"});
  EXPECT_EQ(study.points[0].texts, std::vector<std::string>{"links; latency"});
  EXPECT_EQ(study.points[1].texts, std::vector<std::string>{"links"});
  EXPECT_EQ(study.points[2].texts, std::vector<std::string>{""}) << "it failed";
}

TEST_F(StoreStudy, ListsWhatIsStored) {
  const auto sweeps = stored_sweeps(database);
  ASSERT_EQ(sweeps.size(), 2U);
  EXPECT_EQ(sweeps[0].name, "grid");
  EXPECT_EQ(sweeps[1].kind, "search");
}

TEST_F(StoreStudy, HasTheAxesInUnitsThatPeopleRead) {
  const Study study = read_study(database, "grid");
  EXPECT_EQ(study.title, "grid");
  EXPECT_EQ(study.version, "1.2.3");
  ASSERT_EQ(study.axes.size(), 2U);
  EXPECT_EQ(study.axes[0].unit, "GB/s");
  EXPECT_EQ(study.axes[1].scale, Column::Scale::category);
  EXPECT_DOUBLE_EQ(study.points[0].axes[0], 64);
  EXPECT_EQ(study.points[0].axes[1], 1);  // ring is the second of the axis
  EXPECT_EQ(study.points[1].labels, (std::vector<std::string>{"128 GB/s", "tree"}));
}

TEST_F(StoreStudy, HasTheEnergyOfEachComponentAndOperation) {
  const Study study = read_study(database, "grid");
  EXPECT_EQ(study.components, (std::vector<std::string>{"pe", "hbm"}));
  ASSERT_EQ(study.operations.size(), 2U);
  EXPECT_EQ(study.operations[1].key, "cube.hbm.energy_per_bit");
  EXPECT_EQ(study.operations[1].component, 1U);
  EXPECT_EQ(study.points[0].energy.dynamic_pj, (std::vector<double>{3, 1}));
  EXPECT_EQ(study.points[0].energy.static_pj, (std::vector<double>{4, 2}));
  EXPECT_EQ(study.points[0].energy.counts, std::vector<double>{8});
  ASSERT_EQ(study.points[1].energy.dynamic_pj.size(), 2U);
  EXPECT_TRUE(std::isnan(study.points[1].energy.dynamic_pj[0]));  // this machine has no such component
  EXPECT_EQ(study.points[1].energy.dynamic_pj[1], 5);
  EXPECT_EQ(study.points[1].energy.operation_pj[1], 5);
  EXPECT_TRUE(study.points[2].energy.dynamic_pj.empty());  // it failed
}

TEST_F(StoreStudy, HasObjectivesFirstThenFiguresThatDiffer) {
  const Study study = read_study(database, "grid");
  ASSERT_EQ(study.metrics.size(), 3U);
  EXPECT_EQ(study.metrics[0].column.name, "time_ns");
  EXPECT_TRUE(study.metrics[1].objective);
  EXPECT_EQ(study.metrics[1].goal, search::Goal::maximize);
  EXPECT_EQ(study.metrics[2].column.name, "energy_pj");  // ranks is 4 everywhere, time_ns an objective
  EXPECT_EQ(study.points[1].values, (std::vector<double>{20, 3, 6}));
  EXPECT_EQ(study.front(), (std::vector<std::size_t>{0, 1}));
}

TEST_F(StoreStudy, HasConfigurationAndCommandOfEachPoint) {
  const Study study = read_study(database, "grid");
  EXPECT_EQ(study.points[0].command, "kernbench run x");
  EXPECT_EQ(study.points[0].config.at("ucie").at("bandwidth"), "64 GB/s");
}

TEST_F(StoreStudy, TellsFailedPointsFromThoseThatWereNotRun) {
  const Study study = read_study(database, "grid");
  EXPECT_EQ(study.points[2].status, "failed");
  EXPECT_EQ(study.points[2].exit_code, 3);
  EXPECT_EQ(study.points[2].error, "deadlock");
  EXPECT_EQ(study.points[3].status, "not run");
  EXPECT_TRUE(std::isnan(study.points[3].values[0]));
}

TEST_F(StoreStudy, HasEverySearchOverTheSameAxes) {
  EXPECT_TRUE(read_study(database, "grid").searches.empty());
  database.exec(R"(
    CREATE TABLE search_runs(sweep TEXT PRIMARY KEY, algorithm TEXT, seed INTEGER);
    CREATE TABLE search_generations(sweep TEXT, generation INTEGER, evaluated INTEGER, front INTEGER, hypervolume REAL, front_keys TEXT);
    INSERT INTO search_runs VALUES('grid/nsga2-1', 'nsga2', 1);
    INSERT INTO search_generations VALUES('grid/nsga2-1', 0, 8, 3, 1.5, '["k1"]'),
                                         ('grid/nsga2-1', 1, 12, 4, 2.5, '["k1", "k2"]'),
                                         ('grid/nsga2-1', 2, 13, 4, 2.5, '["k1", "not stored"]');
  )");
  const Study study = read_study(database, "grid");
  ASSERT_EQ(study.searches.size(), 1U);
  EXPECT_EQ(study.searches[0].algorithm, "nsga2");
  ASSERT_EQ(study.searches[0].generations.size(), 3U);
  EXPECT_EQ(study.searches[0].generations[1].evaluated, 12U);
  EXPECT_DOUBLE_EQ(study.searches[0].generations[1].hypervolume, 2.5);
  // Front (10 ns, rating 1) and (20 ns, rating 3): reference 22 ns and rating 0.9, which is 1 less a tenth. The first
  // point alone dominates 12 x 0.1, the second adds 2 x 2.
  EXPECT_NEAR(study.searches[0].generations[0].share, 1.2 / 5.2, 1e-12);
  EXPECT_NEAR(study.searches[0].generations[1].share, 1, 1e-12);
  EXPECT_TRUE(std::isnan(study.searches[0].generations[2].share)) << "a point of its front is missing";
}

}  // namespace
}  // namespace kernbench::report
