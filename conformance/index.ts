export { type CalleeBench, type CalleeBenchOptions, calleeChecks, openCalleeBench } from './callee/index.ts';
export { type CallerBench, type CallerBenchOptions, callerChecks, openCallerBench } from './caller/index.ts';
export { type Check, type CheckResult, type Report, SkipCheck } from './check.ts';
export { contractChecks } from './contracts.ts';
export { formatReport, REPORT_FORMATS, type ReportFormat, type Totals, totalsOf } from './report.ts';
export { type RunOptions, runChecks } from './runner.ts';
