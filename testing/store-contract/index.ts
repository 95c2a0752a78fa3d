import type { ContractCase } from '../contract.ts';
import type { StoreHarness } from './harness.ts';
import { lifecycleCases } from './lifecycle.ts';
import { modelCases } from './model.ts';
import { raceCases } from './races.ts';
import { scanCases } from './scans.ts';
import { transactionCases } from './transactions.ts';
import { valueCases } from './values.ts';
import { writeCases } from './writes.ts';

export { type OtherProcessProgram, runOtherProcessProgram, type StoreHarness } from './harness.ts';

/** What every store promises, as cases to register with any test runner. */
export function storeContract(harness: StoreHarness): readonly ContractCase[] {
  return [
    ...writeCases(harness),
    ...scanCases(harness),
    ...valueCases(harness),
    ...transactionCases(harness),
    ...raceCases(harness),
    ...lifecycleCases(harness),
    ...modelCases(harness),
  ];
}
