#pragma once
#include <string>

#include "tlm/machine/ids.h"

/// The one owner of structural names: formats and parses them. The same string, without a root prefix and with dots,
/// stands in SystemC's hierarchy, globs, logs, waves, traces, errors and reports.
namespace kernbench::names {

std::string sip(std::uint16_t sip);                               ///< sip0
std::string cube(CubeCoord cube);                                 ///< sip0.cube3
std::string router(CubeCoord cube, int row, int column);          ///< sip0.cube3.r2c1
std::string pe(PeCoord pe);                                       ///< sip0.cube3.pe5
std::string pe_part(PeCoord pe, const std::string& part);         ///< sip0.cube3.pe5.dma_r
std::string hbm(CubeCoord cube);                                  ///< sip0.cube3.hbm
std::string hbm_port(PeCoord owner);                              ///< sip0.cube3.hbm.pe5
std::string pseudo_channel(CubeCoord cube, int channel, int pc);  ///< sip0.cube3.hbm.ch4.pc1
std::string sram(CubeCoord cube);                                 ///< sip0.cube3.sram
std::string m_cpu(CubeCoord cube);                                ///< sip0.cube3.m_cpu
std::string initiator(CubeCoord cube, std::uint16_t number);      ///< sip0.cube3.initiator1
std::string ucie(CubeCoord cube, Side side);                      ///< sip0.cube3.ucie_e
std::string io(std::uint16_t sip);                                ///< sip0.io0
std::string io_cpu(std::uint16_t sip);                            ///< sip0.io0.io_cpu
std::string pcie_ep(std::uint16_t sip);                           ///< sip0.io0.pcie_ep
std::string crossbar(std::uint16_t sip);                          ///< sip0.io0.xbar
std::string io_ucie(std::uint16_t sip, int column);               ///< sip0.io0.ucie2
std::string link_port(std::uint16_t sip, int port);               ///< sip0.io0.link1

std::string fabric_crossbar();               ///< fabric.xbar, of the switch between SIPs
std::string fabric_link(std::uint16_t sip);  ///< fabric.link3, its port towards that SIP
/// Network interface of an endpoint: sip0.cube3.ni_pe5, sip0.cube3.ni_hbm5, sip0.cube3.ni_m_cpu, sip0.io0.ni_io_cpu.
std::string network_interface(const std::string& endpoint);

/// Last component: the leaf name that a SystemC module is constructed with.
std::string leaf(const std::string& name);
/// Parent of a name: "sip0.cube3" of "sip0.cube3.pe5"; empty for a top-level one.
std::string parent(const std::string& name);

/// Parses "sip0.cube3.pe5" (anything after it is ignored if a dot follows). Throws std::invalid_argument with the text
/// and what is expected.
PeCoord parse_pe(const std::string& text);

/// Glob over structural names: '*' and '?' stay within one component, '**' crosses dots.
bool matches(const std::string& glob, const std::string& name);

}  // namespace kernbench::names
