import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { findZoneFolder } from './data-dir.ts'

let folder = ''
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'seamark-data-dir-'))))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

it('is the configured folder, else that of the Pod, where it can be written, and none elsewhere; why is said', async () => {
  const tokenFile = join(folder, 'token')
  const podFolder = join(folder, 'dns')
  const inPod = {
    env: { KUBERNETES_SERVICE_HOST: '192.0.2.1' },
    tokenFile,
    podFolder,
    configured: '',
    setting: 'dns.copyDir',
  }
  expect(await findZoneFolder(inPod)).toEqual({ folder: undefined, why: 'dns.copyDir is not set' })
  writeFileSync(tokenFile, 'x')
  expect(await findZoneFolder({ ...inPod, env: {} })).toEqual({ folder: undefined, why: 'dns.copyDir is not set' })
  expect(await findZoneFolder(inPod)).toEqual({ folder: podFolder })
  const configured = join(folder, 'own')
  for (const env of [inPod.env, {}])
    expect(await findZoneFolder({ ...inPod, env, configured })).toEqual({ folder: configured })
  // A file in its place: also root cannot write there.
  const taken = join(folder, 'taken')
  writeFileSync(taken, '')
  expect(await findZoneFolder({ ...inPod, podFolder: join(taken, 'dns') })).toMatchObject({
    folder: undefined,
    why: expect.stringContaining('is not writable'),
  })
})
