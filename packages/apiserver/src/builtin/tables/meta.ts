/** Types that all groups share, Kubernetes 1.36. Format: ../table.ts. */
export const META_TYPES = `
meta.v1
.Condition type=1s!* status=2s!* observedGeneration=3l lastTransitionTime=4T!* reason=5s!* message=6s!*
.CreateOptions dryRun=1[s fieldManager=3s fieldValidation=4s
.DeleteOptions gracePeriodSeconds=1l? preconditions=2<.Preconditions>? orphanDependents=3b? propagationPolicy=4s? dryRun=5[s@atomic ignoreStoreReadErrorWithClusterBreakingPotential=6b?
.FieldSelectorRequirement key=1s!* operator=2s!* values=3[s@atomic
.LabelSelector@atomic matchLabels=1{s matchExpressions=2[<.LabelSelectorRequirement>@atomic
.LabelSelectorRequirement key=1s!* operator=2s!* values=3[s@atomic
.ListMeta selfLink=1s resourceVersion=2s continue=3s remainingItemCount=4l? shardInfo=5<.ShardInfo>?
.ManagedFieldsEntry manager=1s operation=2s apiVersion=3s time=4T? fieldsType=6s fieldsV1=7R? subresource=8s
.ObjectMeta name=1s generateName=2s namespace=3s selfLink=4s uid=5s resourceVersion=6s generation=7l creationTimestamp=8T deletionTimestamp=9T? deletionGracePeriodSeconds=10l? labels=11{s annotations=12{s ownerReferences=13[<.OwnerReference>~merge(uid)@map(uid) finalizers=14[s~merge@set managedFields=17[<.ManagedFieldsEntry>@atomic
.OwnerReference@atomic apiVersion=5s!* kind=1s!* name=3s!* uid=4s!* controller=6b? blockOwnerDeletion=7b?
.PatchOptions dryRun=1[s force=2b? fieldManager=3s fieldValidation=4s
.Preconditions uid=1s? resourceVersion=2s?
.ShardInfo selector=1s!*
.Status metadata=1<.ListMeta>! status=2s message=3s reason=4s details=5<.StatusDetails>? code=6i
.StatusCause reason=1s message=2s field=3s
.StatusDetails name=1s group=2s kind=3s uid=6s causes=4[<.StatusCause>@atomic retryAfterSeconds=5i
.UpdateOptions dryRun=1[s fieldManager=2s fieldValidation=3s
`
