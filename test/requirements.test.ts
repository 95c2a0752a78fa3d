import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { REQUIREMENTS } from './requirements.ts';

/** Ids cited by a test: as the first argument of `verifies`, in a case table, or in a contract case. */
function citedIds(): Set<string> {
  const folders = [new URL('.', import.meta.url), new URL('../testing/', import.meta.url)];
  const texts = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !path.startsWith('requirements'))
      .map((path) => readFileSync(new URL(path, folder), 'utf8')),
  );
  return new Set(texts.flatMap((text) => text.match(/(?<=')(?:HCP|V)-\d+(?=')/g) ?? []));
}

describe('requirements', () => {
  it('cited by tests all exist', () => {
    const known = new Set(REQUIREMENTS.map(({ id }) => id));
    expect([...citedIds()].filter((id) => !known.has(id))).toEqual([]);
  });

  it('that both sides MUST keep (5.1) are each proven by a test', () => {
    const cited = citedIds();
    const musts = REQUIREMENTS.filter(({ section, level }) => section === '5.1' && level === 'MUST');
    expect(musts.length).toBe(12);
    expect(musts.filter(({ id }) => !cited.has(id)).map(({ id }) => id)).toEqual([]);
  });

  it('of the callee are each proven by a test: its MUSTs (5.2) and its vectors', () => {
    const cited = citedIds();
    const musts = REQUIREMENTS.filter(({ section, level }) => section === '5.2' && level === 'MUST');
    const number = (id: string) => Number(id.slice(2));
    const within = (from: number, to: number) => (id: string) => number(id) >= from && number(id) <= to;
    const vectors = REQUIREMENTS.filter(({ level, id }) => level === 'VECTOR' && within(1, 91)(id));
    expect([musts.length, vectors.length]).toEqual([26, 79]);
    expect([...musts, ...vectors].filter(({ id }) => !cited.has(id)).map(({ id }) => id)).toEqual([]);
  });

  it('of the safety gate (5.3) are each proven by a test', () => {
    const cited = citedIds();
    const musts = REQUIREMENTS.filter(({ section, level }) => section === '5.3' && level !== 'VECTOR');
    expect(musts.length).toBe(15);
    expect(musts.filter(({ id }) => !cited.has(id)).map(({ id }) => id)).toEqual([]);
  });

  it('of the caller are each proven by a test: its MUSTs (5.4) and its vectors', () => {
    const cited = citedIds();
    const wanted = REQUIREMENTS.filter(
      ({ section, level }) => (section === '5.4' && level === 'MUST') || (section === '6.5' && level === 'VECTOR'),
    );
    expect(wanted.length).toBe(23 + 39);
    expect(wanted.filter(({ id }) => !cited.has(id)).map(({ id }) => id)).toEqual([]);
  });
});
