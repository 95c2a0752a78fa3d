import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createKeyRing, generateKey, openStoredKeyRing } from '../../callee/index.ts';
import { systemClock } from '../../shared/clock.ts';
import { runHcp } from '../support/cli.ts';
import { hcpIn, hcpJson, scratchFolder } from '../support/cli-world.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { World } from '../support/world.ts';

/** A session that has ended. */
async function ended(world: World): Promise<string> {
  await world.serve(async () => ({ outputs: { grown: true } }));
  await world.submit();
  const { sessionId } = await world.started();
  await world.hearOut();
  return sessionId;
}

describeOnStacks('hcp export and hcp verify', (stack) => {
  it('make a file that proves itself with the public keys alone', async () => {
    await using world = await World.create(stack());
    const sessionId = await ended(world);
    const [file, keys] = ['evidence.jsonl', 'public.jwks.json'].map((name) => join(scratchFolder(), name)) as [
      string,
      string,
    ];
    const exported = await hcpIn(world, `export ${sessionId} --out ${file}`);
    expect(exported).toMatchObject({ code: 0, err: [] });
    const ring = await openStoredKeyRing(world.store, world.calleeId, { clock: systemClock });
    writeFileSync(keys, JSON.stringify({ keys: ring.publicKeys() }));
    const elsewhere = await runHcp(['verify', file, '--key', keys]);
    expect(elsewhere.code).toBe(0);
    expect(elsewhere.out.join()).toMatch(`${file} is genuine: session ${sessionId} of ${world.calleeId}, COMPLETED`);
    expect((await hcpIn(world, `verify ${file}`)).code).toBe(0);
  });

  it('print the same bytes, for a pipe', async () => {
    await using world = await World.create(stack());
    const sessionId = await ended(world);
    const { out } = await hcpIn(world, `export ${sessionId}`);
    const { code } = await hcpIn(world, 'verify -', { stdin: `${out.join('\n')}\n` });
    expect(code).toBe(0);
  });

  it('notice one flipped byte anywhere, and say so in one sentence', async () => {
    await using world = await World.create(stack());
    const sessionId = await ended(world);
    const file = join(scratchFolder(), 'evidence.jsonl');
    await hcpIn(world, `export ${sessionId} --out ${file}`);
    const bytes = readFileSync(file);
    for (let at = 0; at < bytes.length; at += Math.ceil(bytes.length / 12)) {
      const flipped = Buffer.from(bytes);
      flipped.writeUInt8(flipped.readUInt8(at) ^ 1, at);
      writeFileSync(file, flipped);
      const { code, out, err } = await hcpIn(world, `verify ${file}`);
      expect({ at, code, lines: out.length, err }).toEqual({ at, code: 1, lines: 1, err: [] });
      expect(out[0]).toMatch(/ is not to be believed: The /);
    }
    const { value } = await hcpJson(world, `verify ${file}`);
    expect(value).toMatchObject({ genuine: false, session_id: sessionId });
  });

  it('seal and check with a key from a file, and refuse one of somebody else', async () => {
    await using world = await World.create(stack());
    const sessionId = await ended(world);
    const folder = scratchFolder();
    const [own, other] = [await generateKey(), await generateKey()];
    for (const [name, key] of Object.entries({ own, other })) writeFileSync(join(folder, name), JSON.stringify(key));
    writeFileSync(join(folder, 'public'), JSON.stringify((await createKeyRing([own])).publicKeys()[0]));
    const file = join(folder, 'evidence.jsonl');
    expect((await hcpIn(world, `export ${sessionId} --out ${file} --key ${folder}/own`)).code).toBe(0);
    expect((await hcpIn(world, `verify ${file} --key ${folder}/public`)).code).toBe(0);
    const { code, out } = await hcpIn(world, `verify ${file} --key ${folder}/other`);
    expect({ code, out: out.join() }).toEqual({ code: 1, out: expect.stringContaining('The seal is not genuine') });
    const half = await hcpIn(world, `export ${sessionId} --key ${folder}/public`);
    expect(half).toMatchObject({ code: 1, out: [], err: [expect.stringContaining('cannot sign')] });
  });

  it('make no key where the callee keeps none', async () => {
    await using world = await World.create(stack());
    const { code, err } = await hcpIn(world, 'verify -', { stdin: '{}' });
    expect({ code, err: err.join() }).toEqual({ code: 2, err: expect.stringContaining('give them with --key') });
    expect(await world.store.scan('keys', 'by_age', { where: [world.calleeId] })).toEqual([]);
  });

  it('tell an audit log that is intact from one that was changed', async () => {
    await using world = await World.create(stack());
    const sessionId = await ended(world);
    const intact = await hcpIn(world, 'verify --audit');
    expect(intact).toMatchObject({ code: 0, out: [expect.stringContaining('is intact')] });
    const [record] = await world.store.scan('audit', 'by_session', { where: [world.calleeId, sessionId] });
    const key = [world.calleeId, String(record?.chain), Number(record?.position)];
    await world.store.commit([{ patch: 'audit', key, set: { body: '{}' } }]);
    const { code, value } = await hcpJson(world, 'verify --audit');
    expect({ code, value }).toMatchObject({ code: 1, value: { intact: false, findings: [{ position: key[2] }] } });
    expect((await hcpIn(world, 'verify --audit')).out[0]).toMatch(/^Record \d+ of chain .* was changed/);
  });

  it('want either a file or the audit log', async () => {
    await using world = await World.create(stack());
    for (const words of ['verify', 'verify file --audit']) expect((await hcpIn(world, words)).code).toBe(2);
  });
});
