import { mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ApiObject } from '../codec/object-shape.ts'
import { createApiServer, openServerData } from '../index.ts'
import { Store } from '../store/store.ts'
import { systemClock } from '../clock.ts'
import { DataDirectory } from './data-directory.ts'

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-data-'))
  onTestFinished(async () => rm(folder, { recursive: true, force: true }))
  return folder
}

function configMap(name: string, value: string): ApiObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'web' }, data: { value } }
}

/** A store on a directory, as a cluster uses it. */
function storeOn(directory: DataDirectory): Store {
  const store = new Store({ clock: systemClock, durability: directory.durabilityOf('') })
  const restored = directory.restored('')
  if (restored !== undefined) store.restore(restored.objects, restored.revision)
  return store
}

const contentOf = (store: Store) =>
  [...store.collection('configmaps').values()]
    .map(({ key, resourceVersion, object }) => ({ key, resourceVersion, object }))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))

describe('a data directory', () => {
  it('returns every object with its revision after any sequence of writes and restarts', async () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ name: fc.constantFrom('a', 'b', 'ü', 'd'), value: fc.string() }) },
      { weight: 2, arbitrary: fc.record({ remove: fc.constantFrom('a', 'b', 'ü', 'd') }) },
      { weight: 1, arbitrary: fc.constant('restart' as const) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const folder = await mkdtemp(join(tmpdir(), 'seamark-data-'))
        let directory = await DataDirectory.open(folder)
        let store = storeOn(directory)
        try {
          for (const each of [...steps, 'restart' as const]) {
            const objects = store.collection('configmaps')
            if (each === 'restart') {
              const [before, revision] = [contentOf(store), store.revision]
              await directory.close()
              directory = await DataDirectory.open(folder)
              store = storeOn(directory)
              expect(contentOf(store)).toEqual(before)
              // A store that never wrote starts at its first revision.
              expect(store.revision).toBe(revision)
            } else if ('remove' in each) objects.remove(`web/${each.remove}`)
            else objects.put(`web/${each.name}`, configMap(each.name, each.value))
          }
        } finally {
          await directory.close()
          await rm(folder, { recursive: true, force: true })
        }
      }),
      { numRuns: 25 },
    )
  })

  it('contains a prefix of the changes when its last file is torn at any byte', async () => {
    const folder = await newFolder()
    const directory = await DataDirectory.open(folder)
    const store = storeOn(directory)
    const durability = directory.durabilityOf('')
    for (let index = 0; index < 20; index++) {
      store.collection('configmaps').put(`web/n${index}`, configMap(`n${index}`, 'x'.repeat(50)))
      await durability.pending()
    }
    await directory.close()
    const objects = join(folder, 'objects')
    const log = (await readdir(objects)).find((name) => name.endsWith('.log'))
    if (log === undefined) throw new Error('the database has no log')
    let { size } = await stat(join(objects, log))
    let known = 20
    while (size > 0) {
      size = Math.max(0, size - 97)
      await truncate(join(objects, log), size)
      // Opened without this class: a recovery moves the content to another file.
      const copy = await newFolder()
      for (const name of await readdir(objects))
        if (name !== 'LOCK') await writeFile(join(copy, name), await readFile(join(objects, name)))
      const database = new ClassicLevel<string, string>(copy)
      const keys = (await database.keys().all()).filter((key) => key.startsWith('object'))
      const revision = Number((await database.get('revision\0')) ?? 1)
      await database.close()
      expect(keys).toHaveLength(revision - 1)
      expect(keys.length).toBeLessThanOrEqual(known)
      known = keys.length
    }
    expect(known).toBe(0)
  })

  it('that another process uses is refused with what to do', async () => {
    const folder = await newFolder()
    const directory = await DataDirectory.open(folder)
    await expect(DataDirectory.open(folder)).rejects.toThrow(/is in use by another process; end it/)
    await directory.close()
  })

  it('of a newer version is refused, and stays as it is', async () => {
    const folder = await newFolder()
    const database = new ClassicLevel<string, string>(join(folder, 'objects'))
    await database.put('format', '2')
    await database.close()
    await expect(DataDirectory.open(folder)).rejects.toThrow(/has format 2, this version reads format 1/)
    const again = new ClassicLevel<string, string>(join(folder, 'objects'))
    expect(await again.get('format')).toBe('2')
    await again.close()
  })

  it('that is a file is refused', async () => {
    const folder = await newFolder()
    await writeFile(join(folder, 'file'), '')
    await expect(DataDirectory.open(join(folder, 'file'))).rejects.toThrow(/cannot be used/)
  })

  it('after a failed write answers nothing that is not on disk, and reports what to do', async () => {
    const folder = await newFolder()
    const data = await openServerData(folder)
    const failures: string[] = []
    data.directory.whenFailed(({ message }) => failures.push(message))
    const server = createApiServer({ data })
    const create = async (name: string) =>
      server.fetch('/api/v1/namespaces/default/configmaps', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ metadata: { name } }),
      })
    expect((await create('kept')).status).toBe(201)
    // The database is closed under the server, as a disk that went away.
    await data.directory.close()
    expect((await create('lost')).status).toBe(500)
    expect((await server.fetch('/api/v1/namespaces/default/configmaps/lost')).status).toBe(500)
    expect(failures).toHaveLength(1)
    expect(failures[0]).toMatch(/cannot be written: .*nothing that was acknowledged is lost/)
  })
})

describe('a server with a data directory', () => {
  const widgets = (properties: object) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } },
        },
      ],
    },
  })
  const start = async (folder: string) => {
    const data = await openServerData(folder)
    return { data, server: createApiServer({ data, tokens: new Map() }) }
  }
  type Running = Awaited<ReturnType<typeof start>>['server']
  const read = async (server: Running, path: string) =>
    (await (await server.fetch(path)).json()) as Record<string, unknown> & { metadata: Record<string, string> }
  const send = async (server: Running, method: string, path: string, body: object) => {
    const response = await server.fetch(path, {
      method,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }

  it('serves its definitions and their objects after a restart, and writes nothing by itself', async () => {
    const folder = await newFolder()
    const first = await start(folder)
    const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    await send(first.server, 'POST', crds, widgets({ size: { type: 'integer' } }))
    const path = '/apis/example.com/v1/namespaces/default/widgets'
    await send(first.server, 'POST', path, {
      apiVersion: 'example.com/v1',
      kind: 'Widget',
      metadata: { name: 'w' },
      spec: { size: 3 },
    })
    // The conditions of the definition, the default accounts of the namespaces.
    await expect
      .poll(async () => JSON.stringify((await read(first.server, `${crds}/widgets.example.com`))['status']))
      .toContain('Established')
    await expect.poll(async () => (await read(first.server, '/api/v1/configmaps?limit=500'))['items']).toHaveLength(4)
    const [widget, list] = [await read(first.server, `${path}/w`), await read(first.server, '/api/v1/namespaces')]
    await first.server.close()

    const second = await start(folder)
    expect(await read(second.server, `${path}/w`)).toEqual(widget)
    expect(await read(second.server, '/api/v1/namespaces')).toEqual(list)
    await second.server.close()
    const third = await start(folder)
    expect((await read(third.server, '/api/v1/namespaces')).metadata).toEqual(list.metadata)
    // What was allocated before stays allocated, and new revisions are higher than all earlier ones.
    const service = { metadata: { name: 's' }, spec: { ports: [{ port: 80 }], clusterIP: '10.96.0.1' } }
    expect((await send(third.server, 'POST', '/api/v1/namespaces/default/services', service)).status).toBe(422)
    const created = await send(third.server, 'POST', '/api/v1/namespaces', { metadata: { name: 'new' } })
    const { resourceVersion } = created.body['metadata'] as { resourceVersion: string }
    expect(Number(resourceVersion)).toBeGreaterThan(Number(list.metadata['resourceVersion']))
    await third.server.close()
  })

  it('answers a watch that resumes from before the restart with 410, so that clients list again', async () => {
    const folder = await newFolder()
    const first = await start(folder)
    const { metadata } = await read(first.server, '/api/v1/namespaces')
    await send(first.server, 'POST', '/api/v1/namespaces', { metadata: { name: 'later' } })
    await first.server.close()
    const second = await start(folder)
    const version = metadata['resourceVersion']
    const response = await second.server.fetch(`/api/v1/namespaces?watch=true&resourceVersion=${version}`)
    expect(await response.text()).toContain('"code":410')
    await second.server.close()
  })

  it('keeps its CA, the token of the administrator and ServiceAccount tokens', async () => {
    const folder = await newFolder()
    const first = await start(folder)
    const path = '/api/v1/namespaces/default/serviceaccounts'
    await send(first.server, 'POST', path, { metadata: { name: 'robot' } })
    const issued = await send(first.server, 'POST', `${path}/robot/token`, { spec: {} })
    const { token } = issued.body['status'] as { token: string }
    const { authority, adminToken } = first.data.credentials
    await first.server.close()
    const second = await start(folder)
    expect(second.data.credentials.authority).toEqual(authority)
    expect(second.data.credentials.adminToken).toBe(adminToken)
    const review = await send(second.server, 'POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token } })
    expect(review.body['status']).toMatchObject({ authenticated: true })
    expect((await stat(join(folder, 'credentials.json'))).mode & 0o777).toBe(0o600)
    await second.server.close()
  })
})
