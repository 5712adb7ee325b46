/** Manifests from files: YAML or JSON, several documents, Lists. */
import { readFile } from 'node:fs/promises'
import { messageOf } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { parseAllDocuments } from 'yaml'
import { CommandError, EXIT } from './command.ts'

/** `-` is stdin. Throws CommandError on what cannot be read or is no manifest. */
export async function readManifests(files: readonly string[]): Promise<Obj[]> {
  return (await Promise.all(files.map(readFileObjects))).flat()
}

async function readFileObjects(file: string): Promise<Obj[]> {
  let text: string
  try {
    text = await readFile(file === '-' ? '/dev/stdin' : file, 'utf8')
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${messageOf(error)}`, EXIT.usage)
  }
  return parseAllDocuments(text).flatMap((document) => {
    const [fault] = document.errors
    if (fault !== undefined) throw new CommandError(`${file}: ${fault.message}`, EXIT.usage)
    const value = document.toJS() as (Obj & { items?: Obj[] }) | null
    if (value === null) return []
    const items = value.kind === 'List' ? (value.items ?? []) : [value]
    for (const item of items)
      if (item.kind === undefined || item.metadata?.name === undefined)
        throw new CommandError(`${file}: a document has no kind or metadata.name`, EXIT.usage)
    return items
  })
}
