import type { Reporter, TestCase, TestModule } from 'vitest/node';
import { REQUIREMENTS } from '../requirements.ts';

/** Closes a run: which engine each contract suite ran on, which requirements nobody cites yet, and the plain count. */
export class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: ReturnType<TestCase['result']>['state']) =>
      tests.filter((test) => test.result().state === state).length;
    const broken = modules.filter((module) => module.errors().length > 0).length;
    printContracts(modules);
    printUncited(tests);
    const skipped = count('skipped');
    console.log(
      `${count('passed')} passed, ${count('failed') + broken} failed${skipped ? `, ${skipped} skipped` : ''}`,
    );
  }
}

function printContracts(modules: readonly TestModule[]): void {
  const suites = modules
    .flatMap((module) => [...module.children.suites()])
    .filter(({ name }) => name.includes('contract:'));
  for (const suite of suites) {
    const tests = [...suite.children.allTests()];
    const passed = tests.filter((test) => test.result().state === 'passed').length;
    console.log(`${suite.name}: ${passed} of ${tests.length} passed${skipNotes(tests)}`);
  }
}

/** Why tests did not run, each reason once: a contract without its server must not look like one that was kept. */
function skipNotes(tests: readonly TestCase[]): string {
  const skipped = tests.map((test) => test.result()).filter((result) => result.state === 'skipped');
  if (skipped.length === 0) return '';
  const reasons = new Set(skipped.map(({ note }) => note ?? 'no reason given'));
  return `, ${skipped.length} skipped: ${[...reasons].join('; ')}`;
}

function printUncited(tests: readonly TestCase[]): void {
  const titles = tests.filter((test) => test.result().state === 'passed').map((test) => test.fullName);
  const cited = new Set(titles.flatMap((title) => title.match(/\b(?:HCP|V)-\d+\b/g) ?? []));
  for (const level of ['MUST', 'SHOULD', 'MAY', 'VECTOR'] as const) {
    const all = REQUIREMENTS.filter((requirement) => requirement.level === level);
    const open = all.filter(({ id }) => !cited.has(id)).map(({ id }) => id);
    const name = level === 'VECTOR' ? 'vectors' : level;
    console.log(
      `${name}: ${all.length - open.length} of ${all.length} cited${open.length ? `; not yet: ${open.join(' ')}` : ''}`,
    );
  }
}
