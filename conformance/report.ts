import type { CheckResult, Report } from './check.ts';

/** How a report can be written. */
export const REPORT_FORMATS = ['text', 'json', 'junit'] as const;
export type ReportFormat = (typeof REPORT_FORMATS)[number];

export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export function totalsOf(results: readonly CheckResult[]): Totals {
  const count = (status: CheckResult['status']) => results.filter((result) => result.status === status).length;
  return { passed: count('passed'), failed: count('failed'), skipped: count('skipped') };
}

/** The report as a text, without a line end behind it. */
export function formatReport(report: Report, format: ReportFormat): string {
  switch (format) {
    case 'text':
      return textReport(report);
    case 'json':
      return jsonReport(report);
    case 'junit':
      return junitReport(report);
  }
}

/** For people: a line per family, then what failed and what was skipped, then the totals. */
function textReport({ subject, results }: Report): string {
  const families = familiesOf(results);
  const width = Math.max(0, ...families.map(([family]) => family.length));
  const notable = (status: CheckResult['status']) =>
    results.filter((result) => result.status === status).flatMap(entryLines);
  return [
    subject,
    '',
    ...families.map(([family, members]) => `  ${family.padEnd(width)}  ${inWords(totalsOf(members))}`),
    ...notable('failed'),
    ...notable('skipped'),
    '',
    allInWords(totalsOf(results)),
  ].join('\n');
}

function entryLines({ status, id, title, requirements, message = '' }: CheckResult): string[] {
  const proves = requirements.length === 0 ? '' : ` [${requirements.join(', ')}]`;
  return ['', `${status.toUpperCase()} ${id}${proves}`, `  ${title}`, `  ${message.replaceAll('\n', '\n  ')}`];
}

/** What is zero is left out. */
function inWords(totals: Totals): string {
  return Object.entries(totals)
    .filter(([, count]) => count > 0)
    .map(([status, count]) => `${count} ${status}`)
    .join(', ');
}

function allInWords({ passed, failed, skipped }: Totals): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/** For programs. */
function jsonReport({ subject, startedAt, results }: Report): string {
  return JSON.stringify({
    subject,
    started_at: startedAt,
    totals: totalsOf(results),
    results: results.map(({ durationMs, ...result }) => ({ ...result, duration_ms: durationMs })),
  });
}

/** For build servers: one suite per family. */
function junitReport({ subject, startedAt, results }: Report): string {
  const suites = familiesOf(results).map(([family, members]) => {
    const inside = members.map((result) => testCase(result)).join('\n');
    return `  <testsuite${attributes({ name: family, ...counts(members), timestamp: startedAt })}>\n${inside}\n  </testsuite>`;
  });
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites${attributes({ name: subject, ...counts(results) })}>`,
    ...suites,
    '</testsuites>',
  ].join('\n');
}

function counts(results: readonly CheckResult[]): Record<string, string> {
  const { failed, skipped } = totalsOf(results);
  const ms = results.reduce((sum, { durationMs }) => sum + durationMs, 0);
  return {
    tests: String(results.length),
    failures: String(failed),
    errors: '0',
    skipped: String(skipped),
    time: seconds(ms),
  };
}

function testCase({ id, title, requirements, status, message = '', durationMs }: CheckResult): string {
  const proves = requirements.length === 0 ? '' : ` [${requirements.join(', ')}]`;
  const open = `    <testcase${attributes({ classname: id, name: `${title}${proves}`, time: seconds(durationMs) })}`;
  if (status === 'passed') return `${open}/>`;
  const [firstLine = ''] = message.split('\n');
  const told = attributes({ message: firstLine });
  const inside = status === 'skipped' ? `<skipped${told}/>` : `<failure${told}>${escapeXml(message)}</failure>`;
  return `${open}>${inside}</testcase>`;
}

function attributes(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${escapeXml(value)}"`)
    .join('');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** What an implementation said may hold anything, also characters that XML cannot have, not even escaped. */
function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^\P{Cc}\t\n\r]|[\ufffe\uffff]/gu, '\ufffd')
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

/** In the order in which they come first. */
function familiesOf(results: readonly CheckResult[]): [family: string, members: CheckResult[]][] {
  return [...Map.groupBy(results, ({ family }) => family)];
}
