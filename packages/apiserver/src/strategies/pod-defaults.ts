/** What the server fills into pod specs, wherever one stands: pods, templates, jobs. */
import { asRecords, isRecord, type Json } from '../object-shape.ts'

/** Sets `key` when it is absent or, for text, empty. */
export function fill(target: Json, key: string, value: unknown): void {
  const present = target[key]
  if (present === undefined || present === null || (present === '' && typeof value === 'string')) target[key] = value
}

function pullPolicy(image: unknown): string {
  const text = typeof image === 'string' ? image : ''
  const name = text.split('@')[0] ?? ''
  const tag = /:([^/]+)$/.exec(name)?.[1] ?? (text.includes('@') ? '' : 'latest')
  return tag === 'latest' ? 'Always' : 'IfNotPresent'
}

function fillProbe(probe: unknown): void {
  if (!isRecord(probe)) return
  for (const [key, value] of Object.entries({
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  })) {
    if (probe[key] === undefined || probe[key] === 0) probe[key] = value
  }
  fillHttpGet(probe['httpGet'])
  if (isRecord(probe['grpc'])) fill(probe['grpc'], 'service', '')
}

function fillHttpGet(action: unknown): void {
  if (!isRecord(action)) return
  fill(action, 'path', '/')
  fill(action, 'scheme', 'HTTP')
}

function fillContainer(container: Json): void {
  fill(container, 'imagePullPolicy', pullPolicy(container['image']))
  fill(container, 'terminationMessagePath', '/dev/termination-log')
  fill(container, 'terminationMessagePolicy', 'File')
  fill(container, 'resources', {})
  for (const port of asRecords(container['ports'])) fill(port, 'protocol', 'TCP')
  for (const key of ['livenessProbe', 'readinessProbe', 'startupProbe']) fillProbe(container[key])
  for (const hook of isRecord(container['lifecycle']) ? Object.values(container['lifecycle']) : []) {
    if (isRecord(hook)) fillHttpGet(hook['httpGet'])
  }
  for (const variable of asRecords(container['env'])) {
    const source = variable['valueFrom']
    if (isRecord(source) && isRecord(source['fieldRef'])) fill(source['fieldRef'], 'apiVersion', 'v1')
  }
}

function fillVolume(volume: Json): void {
  if (Object.keys(volume).every((key) => key === 'name')) volume['emptyDir'] = {}
  for (const key of ['secret', 'configMap', 'downwardAPI', 'projected']) {
    const source = volume[key]
    if (isRecord(source)) fill(source, 'defaultMode', 420)
  }
  const hostPath = volume['hostPath']
  if (isRecord(hostPath) && hostPath['type'] === undefined) hostPath['type'] = ''
  const projected = volume['projected']
  for (const source of isRecord(projected) ? asRecords(projected['sources']) : []) {
    if (isRecord(source['serviceAccountToken'])) fill(source['serviceAccountToken'], 'expirationSeconds', 3600)
  }
}

export function fillPodSpec(spec: unknown): void {
  if (!isRecord(spec)) return
  for (const key of ['containers', 'initContainers', 'ephemeralContainers']) asRecords(spec[key]).forEach(fillContainer)
  asRecords(spec['volumes']).forEach(fillVolume)
  fill(spec, 'dnsPolicy', 'ClusterFirst')
  fill(spec, 'restartPolicy', 'Always')
  fill(spec, 'securityContext', {})
  fill(spec, 'terminationGracePeriodSeconds', 30)
  fill(spec, 'schedulerName', 'default-scheduler')
  if (typeof spec['serviceAccountName'] === 'string') fill(spec, 'serviceAccount', spec['serviceAccountName'])
  else if (typeof spec['serviceAccount'] === 'string') spec['serviceAccountName'] = spec['serviceAccount']
}

export function fillTemplate(holder: unknown): void {
  if (!isRecord(holder)) return
  if (!isRecord(holder['template'])) return
  const template = holder['template']
  if (!isRecord(template['metadata'])) template['metadata'] = {}
  if (!isRecord(template['spec'])) template['spec'] = {}
  fillPodSpec(template['spec'])
}
