/** Changes a zone in a folder as fast as it is stored, and prints each serial after it was acknowledged. Argument: the folder. */
import { createRRset, createZone, FolderStore, fqdn, ZoneKeeper } from '@seamark/dns'

const folder = process.argv[2]
if (folder === undefined) throw new Error('which folder?')
const origin = fqdn('example.test')
const keeper = new ZoneKeeper({ server: { swap: () => undefined, suspend: () => undefined, remove: () => undefined } })
// A small limit, so that the kill also falls into the writing of snapshots.
const stored = await keeper.open(origin, new FolderStore({ folder, origin, compactOctets: 2000 }))
if (stored === undefined) {
  const soa = createRRset(origin, 'SOA', 60, ['ns.example.test. host.example.test. 1 3600 600 86400 60'])
  await keeper.replace(createZone(origin, [soa]))
}
for (let i = 0; ; i++) {
  const { serial } = await keeper.commit(origin, (zone, next) => {
    const set = createRRset('count.example.test', 'TXT', 60, [`"${next}"`])
    return zone.with([{ kind: 'put', set }], next)
  })
  process.stdout.write(`${serial}\n`)
}
