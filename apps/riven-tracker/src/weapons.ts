// What is sampled until somebody sets other lists: the hot ones, traded all the time, about three times as often.
const hot = `rubico vectis lanka torid glaive nikana gram kronen zaw_balla lex vasto dread paris strun phenmor laetum felarx burston
  soma boltor ignis tigris stahlta kohm nataruk ceramic_dagger`;

const cold = `acceltra acrid afuris akbronco akjagara akmagnus aksomati akstiletto amprex angstrum ankyros arca_plasmor arca_scisco argonak
  astilla atomos atterax attica azima ballistica baza bo boar boltace braton brakk broken_war bubonico buzlok caustacyst cedo cernos
  cestra cobra_and_crane corinth cronus cycron daikyu dakra_prime dera destreza detron dex_sybaris drakgoon dual_cestra dual_ichor
  embolist epitaph euphona exergis fang ferrox flux_rifle fragor furis fusilai galatine gammacor gaze glaxion gorgon grakata grinlok
  guandao gunsen hate heat_sword hek hema hikou hystrix jat_kittag jat_kusar javlok karak karyst kama kesheg knell komorex kraken kulstar
  kunai lacera latron lecta lenz lesion magistar magnus marelok mire miter mutalist_cernos nami_skyla nukor ocucor ogris ohma okina
  opticor orthos pandero pangolin_sword panthera paracyst pathocyst pennant penta phage phantasma plague_keewar pox prisma pyrana quanta
  quartakk quatz quellor redeemer reaper_prime ripkas sancti_magistar sarpa scindo scoliac seer shaku shedu sibear sicarus silva_and_aegis
  simulor sobek sonicor spectra spira stradavar stubba stug sybaris supra sydon synapse synoid_gammacor talons tekko telos_boltace tenora
  tetra tiberon tipedo tonbo tonkor trumna tysis twin_basolk twin_grakatas twin_gremlins twin_kohmak twin_rogga twin_vipers valkyr_talons
  vaykor_hek veldt velocitus venka verdilac viper volnus vulkar war wolf_sledge xoris zakti zarr zenistar zenith zhuge zylok`;

const words = (text: string): string[] => text.split(/\s+/);

export const weapons = { hot: words(hot), cold: words(cold) };
