/** `kubectl apply -f FILE`, where there is no kubectl. */
import type { Client } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { parseAllDocuments } from 'yaml'
import { applyManifest, type Manifest } from '../examples/manifests.ts'
import type { Ran } from './terminal.ts'

export async function applyFile(client: Client, text: string): Promise<Ran> {
  let printed = ''
  for (const document of parseAllDocuments(text)) {
    const manifest = document.toJS() as Manifest & Obj
    await applyManifest(client, manifest)
    const [group] = manifest.apiVersion?.includes('/') === true ? manifest.apiVersion.split('/') : []
    const kind = [manifest.kind?.toLowerCase(), group].filter((part) => part !== undefined).join('.')
    printed += `${kind}/${manifest.metadata.name} created\n`
  }
  return { code: 0, text: printed }
}
