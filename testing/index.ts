export { conformanceCapability } from './conformance-capability.ts';
export type { ContractCase } from './contract.ts';
export {
  createFaultPlan,
  type DoneFault,
  type Fault,
  type FaultPlan,
  type FaultPlanOptions,
  type FaultRates,
  faultyStore,
  faultyTransport,
} from './fault-plan/index.ts';
export { ManualClock } from './manual-clock.ts';
export {
  type PromoteOptions,
  promote,
  type Replay,
  type ReplayedSession,
  type ReplayOptions,
  recordSession,
  replayRecording,
} from './recorder/index.ts';
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
