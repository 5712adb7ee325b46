/**
 * Services: cluster IPs and node ports are allocated when a Service is written and released when it is deleted.
 * Allocations are derived from the stored Services, so that none can be lost or leak.
 *
 * A dry run gets an address too, as in kube-apiserver; it is released immediately.
 */
import { isIPv4 } from 'node:net'
import { invalidValue } from '../validation/metadata.ts'
import { checkLabel } from '../validation/names.ts'
import { type ApiObject, asRecords, asStrings, getPath, isRecord, type Json } from '../codec/object-shape.ts'
import type { Strategy } from '../resource/resource.ts'
import { dropOldTypeFields } from '../validation/service-rules.ts'
import { validateKind } from '../validation/validation.ts'
import { type Cause } from '../schema/model.ts'
import { internal, invalid } from '../exchange/status.ts'
import type { Collection } from '../store/collection.ts'

/** 10.96.0.0/12, the default of kubeadm. */
const firstAddress = (10 << 24) + (96 << 16)
const addressBits = 20
const firstPort = 30_000
const lastPort = 32_767

function formatAddress(value: number): string {
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.')
}

function parseAddress(address: string): number | undefined {
  if (!isIPv4(address)) return undefined
  return address.split('.').reduce((value, part) => value * 256 + Number(part), 0)
}

const isInRange = (value: number): boolean => value > firstAddress && value < firstAddress + 2 ** addressBits - 1

/** Allocated addresses and ports, updated by the changes of the collection. */
class Allocations {
  readonly #collection: Collection
  readonly #addresses = new Map<string, string>()
  readonly #ports = new Map<number, string>()
  #nextAddress = 0
  #nextPort = 0

  constructor(collection: Collection) {
    this.#collection = collection
    collection.subscribe(({ type, key, previous, current }) => {
      if (previous !== undefined) this.#release(key, previous.object)
      if (type !== 'delete') this.#take(key, current.object)
    })
  }

  #take(key: string, object: ApiObject): void {
    for (const address of asStrings(getPath(object, 'spec', 'clusterIPs')))
      if (address !== 'None') this.#addresses.set(address, key)
    for (const port of portsOf(object)) this.#ports.set(port, key)
  }

  #release(key: string, object: ApiObject): void {
    for (const address of asStrings(getPath(object, 'spec', 'clusterIPs')))
      if (this.#addresses.get(address) === key) this.#addresses.delete(address)
    for (const port of portsOf(object)) if (this.#ports.get(port) === key) this.#ports.delete(port)
  }

  isAddressTaken(address: string, key: string): boolean {
    return (this.#addresses.get(address) ?? key) !== key
  }

  isPortTaken(port: number, key: string): boolean {
    return (this.#ports.get(port) ?? key) !== key
  }

  newAddress(): string {
    const size = 2 ** addressBits - 2
    for (let tried = 0; tried < size; tried += 1) {
      const address = formatAddress(firstAddress + 1 + (this.#nextAddress % size))
      this.#nextAddress += 1
      if (!this.#addresses.has(address)) return address
    }
    throw internal('failed to allocate a serviceIP: range is full')
  }

  newPort(also: ReadonlySet<number>): number {
    const size = lastPort - firstPort + 1
    for (let tried = 0; tried < size; tried += 1) {
      const port = firstPort + (this.#nextPort % size)
      this.#nextPort += 1
      if (!this.#ports.has(port) && !also.has(port)) return port
    }
    throw internal('failed to allocate a nodePort: range is full')
  }

  get size(): number {
    return this.#collection.size
  }
}

function portsOf(object: ApiObject): number[] {
  const given = asRecords(getPath(object, 'spec', 'ports')).map((port) => port['nodePort'])
  return [...given, getPath(object, 'spec', 'healthCheckNodePort')].filter(
    (port): port is number => typeof port === 'number' && port > 0,
  )
}

function needsNodePorts(spec: Json): boolean {
  return (
    spec['type'] === 'NodePort' || (spec['type'] === 'LoadBalancer' && spec['allocateLoadBalancerNodePorts'] !== false)
  )
}

function refuse(object: ApiObject, cause: Cause): never {
  throw invalid({ group: '', kind: 'Service' }, object.metadata.name ?? '', [cause])
}

export function serviceStrategy(common: Strategy, collection: Collection): Strategy {
  const allocations = new Allocations(collection)

  const assignAddress = (object: ApiObject, spec: Json, old: ApiObject | undefined): void => {
    if (spec['type'] === 'ExternalName') {
      for (const key of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy']) delete spec[key]
      return
    }
    const key = `${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`
    const given = typeof spec['clusterIP'] === 'string' ? spec['clusterIP'] : (asStrings(spec['clusterIPs'])[0] ?? '')
    const kept = getPath(old, 'spec', 'clusterIP')
    let address = given === '' && typeof kept === 'string' ? kept : given
    if (
      typeof kept === 'string' &&
      kept !== '' &&
      address !== kept &&
      getPath(old, 'spec', 'type') !== 'ExternalName'
    ) {
      refuse(object, invalidValue('spec.clusterIPs[0]', [address], 'may not change once set'))
    }
    if (address !== '' && address !== 'None') {
      const value = parseAddress(address)
      if (value === undefined && !address.includes(':'))
        refuse(
          object,
          invalidValue('spec.clusterIPs[0]', address, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'),
        )
      if (value !== undefined && !isInRange(value))
        refuse(
          object,
          invalidValue(
            'spec.clusterIPs',
            [address],
            `failed to allocate IP ${address}: the provided network does not match the current range`,
          ),
        )
      if (allocations.isAddressTaken(address, key))
        refuse(
          object,
          invalidValue(
            'spec.clusterIPs',
            [address],
            `failed to allocate IP ${address}: provided IP is already allocated`,
          ),
        )
    }
    if (address === '') address = allocations.newAddress()
    spec['clusterIP'] = address
    spec['clusterIPs'] = [address]
    // A headless Service without a selector defaults to both IP families: its endpoints are managed externally.
    const isOpen = address === 'None' && !isRecord(spec['selector'])
    spec['ipFamilies'] ??= isOpen ? ['IPv4', 'IPv6'] : ['IPv4']
    spec['ipFamilyPolicy'] ??= isOpen ? 'RequireDualStack' : 'SingleStack'
  }

  const assignPorts = (object: ApiObject, spec: Json, old: ApiObject | undefined): void => {
    const ports = asRecords(spec['ports'])
    if (!needsNodePorts(spec)) {
      return
    }
    const key = `${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`
    const before = asRecords(getPath(old, 'spec', 'ports'))
    const used = new Set<number>()
    ports.forEach((port, index) => {
      const at = `spec.ports[${index}].nodePort`
      let number = Number(port['nodePort'] ?? 0)
      if (number === 0)
        number = Number(
          before.find((other) => other['port'] === port['port'] && other['protocol'] === port['protocol'])?.[
            'nodePort'
          ] ?? 0,
        )
      if (number !== 0) {
        if (number < firstPort || number > lastPort)
          refuse(
            object,
            invalidValue(
              at,
              number,
              `provided port is not in the valid range. The range of valid ports is ${firstPort}-${lastPort}`,
            ),
          )
        if (allocations.isPortTaken(number, key))
          refuse(object, invalidValue(at, number, 'provided port is already allocated'))
      } else number = allocations.newPort(used)
      used.add(number)
      port['nodePort'] = number
    })
    const needsHealthPort = spec['type'] === 'LoadBalancer' && spec['externalTrafficPolicy'] === 'Local'
    if (needsHealthPort && Number(spec['healthCheckNodePort'] ?? 0) === 0)
      spec['healthCheckNodePort'] = getPath(old, 'spec', 'healthCheckNodePort') ?? allocations.newPort(used)
  }

  /** A copy of the parts that are modified: the decoded object may be shared with the patch of the request. */
  const ownSpec = (object: ApiObject): Json => {
    const spec: Json = isRecord(object['spec']) ? { ...object['spec'] } : {}
    if (Array.isArray(spec['ports'])) spec['ports'] = asRecords(spec['ports']).map((port) => ({ ...port }))
    object['spec'] = spec
    return spec
  }

  return {
    ...common,
    checkName: checkLabel,
    prepareForCreate(object) {
      object['status'] = { loadBalancer: {} }
      const spec = ownSpec(object)
      if (validateKind('services', object, undefined).length > 0) return
      assignAddress(object, spec, undefined)
      assignPorts(object, spec, undefined)
    },
    prepareForUpdate(object, old, context) {
      if (context.subresource === 'status') return
      const spec = ownSpec(object)
      dropOldTypeFields(spec, old['spec'] as Json)
      if (spec['type'] !== 'LoadBalancer') object['status'] = { ...(object['status'] as Json), loadBalancer: {} }
      if (validateKind('services', object, old).length > 0) return
      assignAddress(object, spec, old)
      assignPorts(object, spec, old)
    },
  }
}
