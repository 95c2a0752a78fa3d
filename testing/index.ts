export type { ContractCase } from './contract.ts';
export { ManualClock } from './manual-clock.ts';
export {
  type OtherProcessProgram,
  runOtherProcessProgram,
  type StoreHarness,
  storeContract,
} from './store-contract/index.ts';
export {
  type Heal,
  type TransportFaults,
  type TransportHarness,
  transportContract,
} from './transport-contract/index.ts';
