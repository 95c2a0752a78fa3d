import { describe, expect, it } from 'vitest';
import type { CheckResult, Report } from '../../conformance/check.ts';
import { formatReport, totalsOf } from '../../conformance/report.ts';

function result(id: string, more: Partial<CheckResult> = {}): CheckResult {
  const [, family = ''] = id.split('/');
  return {
    id,
    family,
    requirements: ['HCP-001', 'V-02'],
    title: `does ${id}`,
    status: 'passed',
    durationMs: 1500,
    ...more,
  };
}

const NASTY = `<b> & "quotes" 'too' ]]> \u0000\u001b[31m \ud800 \ufffe\nsecond line`;

const REPORT: Report = {
  subject: 'caller <mine> & "yours"',
  startedAt: '2026-01-02T03:04:05.006Z',
  results: [
    result('caller/order/a'),
    result('caller/gaps/b', { status: 'failed', message: NASTY }),
    result('caller/order/c', { status: 'skipped', message: 'It needs more', requirements: [] }),
  ],
};

interface Element {
  readonly name: string;
  readonly attributes: Record<string, string>;
  readonly children: Element[];
  text: string;
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** As strict as XML is about what we write: every tag closed, every character allowed, every `&` an entity. */
function parseXml(xml: string): Element {
  expect(xml).not.toMatch(/[^\P{Cc}\t\n\r]|[\ufffe\uffff]|\p{Cs}/u);
  const [declaration = '', ...rest] = xml.split('\n');
  expect(declaration).toBe('<?xml version="1.0" encoding="UTF-8"?>');
  const root: Element = { name: '', attributes: {}, children: [], text: '' };
  const open = [root];
  let at = 0;
  const body = rest.join('\n');
  for (const token of body.matchAll(/<(\/?)([a-z]+)((?: [a-z]+="[^"<]*")*)(\/?)>|([^<]+)/g)) {
    expect(token.index, `not XML: ${body.slice(at, at + 40)}`).toBe(at);
    at += token[0].length;
    const [, isEnd, name = '', attributes = '', isEmpty, text] = token;
    const parent = open.at(-1) ?? root;
    if (text !== undefined) parent.text += unescapeXml(text);
    else if (isEnd) expect(open.pop()?.name).toBe(name);
    else {
      const pairs = [...attributes.matchAll(/ ([a-z]+)="([^"]*)"/g)].map(([, key = '', value = '']) => [
        key,
        unescapeXml(value),
      ]);
      const element: Element = { name, attributes: Object.fromEntries(pairs), children: [], text: '' };
      parent.children.push(element);
      if (!isEmpty) open.push(element);
    }
  }
  expect([at, open.length, root.children.length]).toEqual([body.length, 1, 1]);
  return root.children[0] as Element; // just counted
}

function unescapeXml(text: string): string {
  expect(text).not.toContain(']]>');
  return text.replace(/&([a-z]*);?/g, (whole, name) => {
    const character = ENTITIES[name];
    if (character === undefined || !whole.endsWith(';')) throw new Error(`No entity of XML: ${whole}`);
    return character;
  });
}

describe('a conformance report', () => {
  it('counts what passed, failed and was skipped', () => {
    expect(totalsOf(REPORT.results)).toEqual({ passed: 1, failed: 1, skipped: 1 });
  });

  it('tells people each family, each failure with its sentence and what it disproves, and the totals last', () => {
    const lines = formatReport({ ...REPORT, subject: 'caller mine' }, 'text').split('\n');
    expect(lines.slice(0, 5)).toEqual(['caller mine', '', '  order  1 passed, 1 skipped', '  gaps   1 failed', '']);
    expect(lines).toContain('FAILED caller/gaps/b [HCP-001, V-02]');
    expect(lines).toContain('  does caller/gaps/b');
    expect(lines).toContain('  second line');
    expect(lines.slice(-5)).toEqual([
      'SKIPPED caller/order/c',
      '  does caller/order/c',
      '  It needs more',
      '',
      '1 passed, 1 failed, 1 skipped',
    ]);
  });

  it('is one JSON object for programs', () => {
    const report = JSON.parse(formatReport(REPORT, 'json'));
    expect(report).toMatchObject({
      subject: REPORT.subject,
      started_at: REPORT.startedAt,
      totals: { passed: 1, failed: 1, skipped: 1 },
    });
    expect(report.results[1]).toEqual({
      ...{ id: 'caller/gaps/b', family: 'gaps', requirements: ['HCP-001', 'V-02'], title: 'does caller/gaps/b' },
      ...{ status: 'failed', message: NASTY, duration_ms: 1500 },
    });
  });

  it('is JUnit XML for build servers, whatever an implementation said', () => {
    const root = parseXml(formatReport(REPORT, 'junit'));
    expect(root.attributes).toEqual({
      ...{ name: REPORT.subject, tests: '3', failures: '1', errors: '0', skipped: '1', time: '4.500' },
    });
    const [order, gaps] = root.children;
    expect(order?.attributes).toMatchObject({ name: 'order', tests: '2', failures: '0', skipped: '1', time: '3.000' });
    const [passed, skipped] = order?.children ?? [];
    expect(passed?.attributes).toEqual({
      ...{ classname: 'caller/order/a', name: 'does caller/order/a [HCP-001, V-02]', time: '1.500' },
    });
    expect(passed?.children).toEqual([]);
    expect(skipped?.children[0]).toMatchObject({ name: 'skipped', attributes: { message: 'It needs more' } });
    const failure = gaps?.children[0]?.children[0];
    const told = `<b> & "quotes" 'too' ]]> \ufffd\ufffd[31m \ufffd \ufffd`;
    expect(failure).toMatchObject({ name: 'failure', attributes: { message: told }, text: `${told}\nsecond line` });
  });

  it('of nothing is still a report', () => {
    const empty = { ...REPORT, subject: 'nothing', results: [] };
    expect(formatReport(empty, 'text').split('\n').at(-1)).toBe('0 passed, 0 failed, 0 skipped');
    expect(parseXml(formatReport(empty, 'junit')).attributes.tests).toBe('0');
  });
});
