/**
 * A plug-in of `seamark dnslb --plugin-dir examples/dns-load-balancer/plugins`: DNS records in a JSON file. The values of the
 * provider are FILE, its path, and ZONES, a comma list. docs/providers/plug-in.md explains the interface.
 */
import { readFile, rename, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'

export const Name = 'json-file'

export function register({ registerProviderType, ProviderError }) {
  registerProviderType('json-file', async (name, { FILE = '', ZONES = '' }) => {
    if (FILE === '' || ZONES === '') throw new Error('FILE and ZONES are required')
    const zones = ZONES.split(',').map((zone) => ({ id: zone, name: zone.endsWith('.') ? zone : `${zone}.` }))

    /** RRsets by `NAME TYPE`, of all zones. */
    async function load() {
      const text = await readFile(FILE, 'utf8').catch((error) => {
        if (error.code === 'ENOENT') return '{}'
        // later: nothing was written, and the same call may succeed at another time.
        throw new ProviderError('ProviderUnavailable', 'later', `${FILE} cannot be read: ${error.code}`)
      })
      return new Map(Object.entries(JSON.parse(text)))
    }

    function check({ id }) {
      if (!zones.some((zone) => zone.id === id))
        throw new ProviderError('ZoneNotFound', 'later', `there is no zone ${id}`)
    }

    return {
      name,
      account: `json-file ${FILE}`,
      capabilities: {
        isAtomic: true,
        comparesAndSwaps: true,
        readsByName: false,
        maxChanges: 1000,
        requestsPerSecond: 100,
      },
      zones: async () => zones,
      async read(zone, names) {
        check(zone)
        const isAsked = ({ name: at }) => names === 'all' || names.has(at)
        return [...(await load()).values()].filter((set) => isWithin(set.name, zone.name) && isAsked(set))
      },
      async apply(zone, batch) {
        check(zone)
        const sets = await load()
        const next = new Map(sets)
        for (const { from, to } of batch) {
          const subject = to ?? from
          const key = `${subject.name} ${subject.type}`
          if (!isWithin(subject.name, zone.name) || !isName(subject.name) || (to !== undefined && !isUsable(to)))
            // rejected: this change can never succeed, and the others of the batch may.
            throw new ProviderError(
              'RecordRejected',
              'rejected',
              `${key} is not in ${zone.name}, is no name of DNS, or has a wrong value`,
            )
          if (!isSame(sets.get(key), from))
            // moved: somebody else changed the zone; it is read again before the next attempt.
            throw new ProviderError('BaseMoved', 'moved', `${key} has changed`)
          if (to === undefined) next.delete(key)
          else next.set(key, to)
        }
        // Replaced as a whole: a reader never sees half of a batch.
        await writeFile(`${FILE}.new`, JSON.stringify(Object.fromEntries(next)))
        await rename(`${FILE}.new`, FILE)
      },
    }
  })
}

function isWithin(name, zone) {
  return name === zone || name.endsWith(`.${zone}`)
}

/** RFC 1035 §2.3.4: 63 octets a label, 255 a name; labels are ASCII here, and have no dot within. */
function isName(name) {
  const labels = name.slice(0, -1).split('.')
  return name.length < 255 && labels.every((label) => label.length >= 1 && label.length <= 63)
}

function isUsable({ type, values }) {
  const family = { A: 4, AAAA: 6 }[type]
  return values.length > 0 && (family === undefined || values.every((value) => isIP(value) === family))
}

function isSame(a, b) {
  if (a === undefined || b === undefined) return a === b
  return a.ttl === b.ttl && a.values.length === b.values.length && a.values.every((value) => b.values.includes(value))
}
