export {
  createFaultPlan,
  type DoneFault,
  type Fault,
  type FaultPlan,
  type FaultPlanOptions,
  type FaultRates,
} from './plan.ts';
export { faultyStore } from './store.ts';
export { faultyTransport } from './transport.ts';
