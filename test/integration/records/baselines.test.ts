/**
 * Adopt, undo, release and transfer with ExternalDNS' registry: how much is owned is right after each of them, because the
 * limits of the guards are shares of it. On our own DNS server, with the guard state in a folder.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createRRset, fqdn } from '@seamark/dns'
import { fileGuardStore } from '@seamark/operator'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type CommandZone, startCommandZone } from './command-zone.ts'
import { runCommand } from './run-command.ts'

const origin = fqdn('example.com.')
const NAMES = Array.from({ length: 58 }, (_, index) => `n${index}`)

const manifest = (names: readonly string[]) =>
  names
    .map(
      (name) => `apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: { name: ${name}, namespace: web, uid: uid-${name} }
spec: { endpoints: [{ dnsName: ${name}.example.com, recordType: A, recordTTL: 60, targets: [192.0.2.1] }] }
`,
    )
    .join('---\n')

describe('how much is owned, after', () => {
  let zone: CommandZone
  const run = async (...argv: string[]) => {
    const result = await runCommand([...argv, '--config', zone.config], zone.env)
    expect([result.code, result.stderr.replaceAll(/^note: .*\n/gm, '')]).toEqual([0, ''])
    return result.stdout
  }
  const owned = async () => {
    const { ownedNames, ownedSources, deleted } = await fileGuardStore(zone.stateFolder).load('own/example.com.')
    return { ownedNames, ownedSources, deleted: deleted.length }
  }
  const adopt = async () => run('adopt', '--from', 'external-dns/prod', '--apply')

  beforeEach(async () => {
    const sets = NAMES.flatMap((name) => [
      createRRset(`${name}.${origin}`, 'A', 60, ['192.0.2.1']),
      createRRset(`a-${name}.${origin}`, 'TXT', 60, [
        `"heritage=external-dns,external-dns/owner=prod,external-dns/resource=ingress/web/${name}"`,
      ]),
    ])
    zone = await startCommandZone('example.com', sets)
  })
  afterEach(async () => zone.stop())

  it('adopt: every name, each with a source of its own', async () => {
    await adopt()
    expect(await owned()).toEqual({ ownedNames: 58, ownedSources: 58, deleted: 0 })
  })

  it('adopt and undo: nothing', async () => {
    await adopt()
    const [number = ''] = /^\d+/m.exec(await run('undo')) ?? []
    await run('undo', number)
    expect(await owned()).toEqual({ ownedNames: 0, ownedSources: 0, deleted: 0 })
  })

  it('adopt and release: nothing, and no name counts as deleted', async () => {
    await adopt()
    await run('release', '--apply')
    expect(await owned()).toEqual({ ownedNames: 0, ownedSources: 0, deleted: 0 })
    await adopt()
    expect(await owned()).toEqual({ ownedNames: 58, ownedSources: 58, deleted: 0 })
  })

  it('adopt and transfer: nothing when it goes to another owner, everything when ExternalDNS gives it up', async () => {
    await adopt()
    await run('transfer', '--from', 'external-dns/prod', '--apply')
    expect(await owned()).toEqual({ ownedNames: 58, ownedSources: 58, deleted: 0 })
    await run('transfer', '--to', 'other', '--to-cluster', 'c-2', '--apply')
    expect(await owned()).toEqual({ ownedNames: 0, ownedSources: 0, deleted: 0 })
  })

  it('two commands: what one deleted is spent for the other', async () => {
    const file = join(zone.folder, 'one.yaml')
    const wanting = async (count: number) => {
      const endpoints = Array.from(
        { length: count },
        (_, index) => `    - { dnsName: w${index}.example.com, recordType: A, recordTTL: 60, targets: [192.0.2.1] }\n`,
      )
      await writeFile(
        file,
        `apiVersion: externaldns.k8s.io/v1alpha1\nkind: DNSEndpoint\nmetadata: { name: one, namespace: web, uid: one }\nspec:\n  endpoints:\n${endpoints.join('')}`,
      )
    }
    const plan = join(zone.folder, 'plan.json')
    const planAndApply = async () => {
      const text = await run('plan', '-f', file, '--out', plan)
      await run('apply', plan)
      return text.trim().split('\n').at(-1)
    }
    await wanting(30)
    expect(await planAndApply()).toBe('30 changes, 0 held')
    await wanting(25)
    expect(await planAndApply()).toBe('5 changes, 0 held')
    // Each command is a process of its own: only the state in the folder contains what is spent.
    await wanting(22)
    const text = await run('plan', '-f', file)
    expect(text.trim().split('\n').at(-1)).toBe('0 changes, 3 held')
    expect(text).toContain('Quarantined')
  })

  it('adopt and the first plan of the sources: what no source asks for stays, with its own code and a way out', async () => {
    await adopt()
    const file = join(zone.folder, 'web.yaml')
    await writeFile(file, manifest(NAMES.slice(0, 52)))
    const plan = join(zone.folder, 'plan.json')
    await run('plan', '-f', file, '--out', plan)
    await run('apply', plan)
    expect(await owned()).toMatchObject({ ownedNames: 58, deleted: 0 })
    const text = await run('plan', '-f', file)
    expect(text).toMatch(/! 6 RRsets .*AdoptedWithoutSource: /)
    expect(text).toContain('0 changes, 6 held')
    const [, id = ''] = /seamark approve ([0-9a-f]+)/.exec(text) ?? []
    expect(await run('plan', '-f', file, '--approve', id)).toContain('6 changes, 0 held')
  })
})
