#!/bin/sh
# Sends a request to the coordinator, and verifies the answer with curl, openssl and POSIX tools:
# - the SHA-256 of the received bytes, and the enclave's signature over this hash
# - the signed receipt, which must name this response and this request
# - the provider's record in the public attestation feed, with its signed statements
#
# Exit codes: 0 prints "verified", after the evidence for the hardware (SIMULATED, or CLAIMED by the machine itself); 1 prints
# "FAILED: <check>"; 2 is wrong usage; 3 prints "NO ANSWER: <reason>": no connection, an incomplete download, or an HTTP error.
#
# Certificates of the manufacturer are not checked here. packages/verifier/test/answer-cases.ts lists the forgeries
# that this script, inference-verify and the web console must refuse.
#
# Signed bytes of a plain answer: the whole body. Signed bytes of a stream: all bytes before the signature, without SSE comment
# blocks (a line that begins with ":", and the following blank line). The signature of chat and completions streams is an event.
# The signature of Messages and Responses streams is a comment block, ": inference-signature {...}".
set -u
LC_ALL=C
export LC_ALL
umask 077

usage() {
  cat >&2 <<'USAGE'
usage: scripts/verify-response.sh [options]
  --base-url URL   address of the service (default: from $DATA_DIR/demo.json)
  --key KEY        API key (default: from $DATA_DIR/demo.json)
  --model M        model to ask (default: from demo.json, else the first in the model list that the endpoint is for)
  --data JSON      whole request body, instead of a short question
  --path PATH      endpoint (default: /v1/chat/completions)
  --stream         ask for a streamed answer
  --weights-sha256 HASH  require that the receipt names these weights
  --nonce          send a random nonce and require it in the receipt
  --save DIR       keep request, headers, body and attestation feed in DIR
  --from DIR       verify what --save kept, without any network
  --flip-byte      change one bit of the body first, to see the verification fail
  --require LEVEL  self_signed: refuse simulated machines; hardware: refused here, as only inference-verify checks certificates
USAGE
  exit 2
}

base_url='' api_key='' model='' data='' path=/v1/chat/completions weights='' stream=no use_nonce=no save='' from='' flip=no required=''
while [ $# -gt 0 ]; do
  case $1 in
    --base-url | --key | --model | --data | --path | --save | --from | --weights-sha256 | --require)
      [ $# -ge 2 ] || usage
      case $1 in
        --base-url) base_url=$2 ;;
        --key) api_key=$2 ;;
        --model) model=$2 ;;
        --data) data=$2 ;;
        --path) path=$2 ;;
        --save) save=$2 ;;
        --from) from=$2 ;;
        --weights-sha256) weights=$2 ;;
        --require) required=$2 ;;
      esac
      shift 2
      ;;
    --stream) stream=yes && shift ;;
    --nonce) use_nonce=yes && shift ;;
    --flip-byte) flip=yes && shift ;;
    *) usage ;;
  esac
done
case $required in '' | self_signed | hardware) ;; *) usage ;; esac

scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
  echo "FAILED: $1"
  exit 1
}
no_answer() {
  echo "NO ANSWER: $1"
  exit 3
}
note() { echo "  $1"; }

# download WHAT URL CURL-OPTION...: downloads with curl. Exits the script without a complete response.
download() {
  what=$1 url=$2
  shift 2
  curl -sS --connect-timeout 10 "$@" "$url"
  result=$?
  case $result in
    0) return ;;
    5 | 6 | 7 | 35 | 60) no_answer "could not connect to $base_url" ;;
    18 | 56) no_answer "$what: the connection closed early" ;;
    28) no_answer "$what: timed out" ;;
    *) no_answer "$what: curl ended with exit code $result" ;;
  esac
}

newline='
'
tab='	'

# Functions that look something up set "value". They use shell built-ins only, because a process per value would add seconds.

# member LINE NAME: sets "value" to the first string member of this name in a line of JSON.
member() {
  value=''
  case $1 in *"\"$2\""*) rest=${1#*"\"$2\""} ;; *) return ;; esac
  rest=${rest#"${rest%%[! ]*}"}
  case $rest in :*) rest=${rest#:} ;; *) return ;; esac
  rest=${rest#"${rest%%[! ]*}"}
  case $rest in \"*\"*) rest=${rest#\"} && value=${rest%%\"*} ;; esac
}

# split_at CHARACTER: splits variables at this character, without file names for their patterns, until split_at_spaces.
split_at() {
  set -f
  IFS=$1
}
split_at_spaces() {
  set +f
  unset IFS
}

# find_last LINES TEXT: sets "value" to the rest of the last line that begins with TEXT.
find_last() {
  value=''
  split_at "$newline"
  for line in $1; do case $line in "$2"*) value=${line#"$2"} ;; esac; done
  split_at_spaces
}

# header NAME: sets "value" to the value of the last response header of this name (in lower case).
header() { find_last "$headers" "$1:"; }

# replace TEXT FROM TO: sets "value" to TEXT with every FROM replaced.
replace() {
  value=''
  rest=$1
  while :; do
    case $rest in *"$2"*) ;; *) break ;; esac
    value=$value${rest%%"$2"*}$3
    rest=${rest#*"$2"}
  done
  value=$value$rest
}

# read_text FILE: sets "value" to the content of a small file, without the line break at its end.
read_text() {
  value=''
  while IFS= read -r line; do value=$value$line$newline; done <"$1"
  value=$value$line
  value=${value%"$newline"}
}

# sha256 FILE...: sets "value" to the hashes of files, one per line. One process for all files, because openssl starts slowly.
sha256() {
  hashed=$(openssl dgst -sha256 "$@")
  value=''
  split_at "$newline"
  for line in $hashed; do value=$value${value:+$newline}${line##*= }; done
  split_at_spaces
}

# canonical TEXT: whether a text is canonical base64 (RFC 4648 section 3.5: standard alphabet, padded, unused bits zero).
canonical() {
  [ $((${#1} % 4)) = 0 ] || return 1
  case $1 in
    '' | *[!A-Za-z0-9+/=]* | *=*[!=]* | *===) return 1 ;;
    *[AQgw]==) ;;
    *==) return 1 ;;
    *[AEIMQUYcgkosw048]=) ;;
    *=) return 1 ;;
  esac
}

# decode [FILE TEXT]...: decodes canonical base64 into files of the scratch directory. A file of another text stays empty.
# Sets "octal" to lines of a file name, and its bytes as escapes for printf. One awk decodes all texts.
decode() {
  texts=''
  while [ $# -gt 0 ]; do
    : >"$scratch/$1"
    if canonical "$2"; then texts="$texts$1 $2$newline"; fi
    shift 2
  done
  octal=$(printf %s "$texts" | awk '
    BEGIN { digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" }
    {
      printf "%s ", $1
      for (at = 1; at < length($2); at += 4) {
        bits = 0
        for (k = 0; k < 4; k++) { digit = index(digits, substr($2, at + k, 1)); bits = bits * 64 + (digit ? digit - 1 : 0) }
        bytes = sprintf("\\%03o\\%03o\\%03o", int(bits / 65536), int(bits / 256) % 256, bits % 256)
        # A group that ends with "=" or "==" has two bytes or one.
        if (substr($2, at + 3, 1) == "=") bytes = substr(bytes, 1, substr($2, at + 2, 1) == "=" ? 4 : 8)
        printf "%s", bytes
      }
      print ""
    }')
  split_at "$newline"
  # shellcheck disable=SC2059 # The format is the bytes.
  for line in $octal; do printf "${line#* }" >"$scratch/${line%% *}"; done
  split_at_spaces
}

# signed_by_key SIGNATURE FILE: verifies the enclave key's signature of a file.
signed_by_key() { openssl dgst -sha256 -verify "$scratch/key.pem" -signature "$1" "$2" >/dev/null 2>&1; }

# statement KIND: verifies a signed statement that "decode" wrote as KIND.json, with its signature KIND.der.
statement() {
  [ -s "$scratch/$1.json" ] && [ -s "$scratch/$1.der" ] || return 1
  find_last "$octal" "$1.json "
  # shellcheck disable=SC2059 # The format is the bytes.
  printf "inference/$1/v1\\000$value" >"$scratch/$1.signed"
  signed_by_key "$scratch/$1.der" "$scratch/$1.signed"
}

# is_integer TEXT: whether a text is a non-negative integer of at most 15 digits.
is_integer() { case $1 in '' | *[!0-9]* | ????????????????*) return 1 ;; esac; }

# lines DEPTH FILE...: removes white space outside strings, and puts each member down to DEPTH on its own line:
#   {
#   "usage":{
#    "usage":"prompt_tokens":1,
# A line begins with the names of the objects that contain its member, each after a space. As no other line begins with white space,
# a file cannot imitate this. A line of a tab and the file name precedes each file. The exit code is 1 if white space was removed, or a
# file ends inside a string or right after one. Only the last file counts.
lines() {
  depth=$1
  shift
  awk -v deepest="$depth" -v RS='"' '
  function show(piece) {
    if (!begun) { printf "%s", prefix[depth]; begun = 1 }
    printf "%s", piece
    if (depth < deepest) name = name piece
  }
  function end_line() { printf "\n"; begun = 0; name = "" }
  FNR == 1 {
    if (NR > 1) end_line()
    printf "\t%s\n", FILENAME
    depth = text = removed = 0
  }
  { if (gsub(/[\n\r]/, "")) removed = 1 }
  text {
    show("\"" $0)
    for (k = 0; substr($0, length($0) - k, 1) == "\\"; k++);
    # A quotation mark after an odd number of backslashes is part of the string.
    if (k % 2 == 0) { text = 0; show("\"") }
    next
  }
  {
    for (i = 1; i <= length($0); i++) {
      char = substr($0, i, 1)
      if (char == " " || char == "\t") { removed = 1; continue }
      if (char == "}" || char == "]") { if (depth <= deepest) end_line(); depth-- }
      if (char == "{" || char == "[") {
        parent = prefix[depth] (depth > 0 ? " " name : "")
        show(char)
        if (++depth <= deepest) { prefix[depth] = parent; end_line() }
        continue
      }
      show(char)
      if (char == "," && depth <= deepest) end_line()
    }
    text = 1
  }
  END { printf "\n"; exit removed || !text }' "$@"
}

# lines_of LINES FILE: sets "value" to the lines of one file in the output of "lines".
lines_of() {
  value=''
  split_at "$newline"
  within=no
  for line in $1; do
    case $line in
      "$tab$2") within=yes ;;
      "$tab"*) within=no ;;
      *) [ $within = no ] || value=$value$newline$line ;;
    esac
  done
  split_at_spaces
}

# inner LINES NAME: sets "value" to the lines of the last member of this name, if it is an object or an array.
inner() {
  value=''
  split_at "$newline"
  for line in $1; do
    case $line in
      "\"$2\":"*) value='' ;;
      " \"$2\":"*) value=$value$newline${line#" \"$2\":"} ;;
    esac
  done
  split_at_spaces
}

# field LINES NAME: sets "value" to the JSON value of the last member of this name in the output of "lines".
field() {
  find_last "$1" "\"$2\":"
  value=${value%,}
}

# text_field LINES NAME: as "field", for a string, without its quotation marks.
text_field() {
  field "$1" "$2"
  case $value in \"*\") value=${value#\"} && value=${value%\"} ;; *) value='' ;; esac
}

# is LINES NAME VALUE: whether a member has this JSON value, which is no object and no array.
is() {
  field "$1" "$2"
  case $value in '{' | '[') return 1 ;; esac
  [ "$value" = "$3" ]
}

# same LINES OTHER NAME: whether a member has the same JSON value in both.
same() {
  field "$2" "$3"
  is "$1" "$3" "$value"
}

# once LINE TEXT: whether TEXT occurs exactly once in a line.
once() { case $1 in *"$2"*"$2"*) return 1 ;; *"$2"*) ;; *) return 1 ;; esac; }

# raw LINE NAME: sets "value" to the JSON text of the first member of this name, a number or a string without commas.
raw() {
  value=''
  case $1 in *"\"$2\":"*) rest=${1#*"\"$2\":"} && value=${rest%%[,\}]*} ;; esac
}

# image_members NAME FILE: prints the string members of this name in a response of the images endpoint, one per line.
image_members() { lines 2 "$2" | grep -oE "^( (\"[^\"]*\":)?)?[{]\"$1\":\"[^\"]*\"" | sed 's/^.*{"[^"]*":"//; s/"$//'; }

# ---- the answer: requested now, or saved earlier

# For awk, a relative path with "=" would be an assignment.
case $from in '' | /*) ;; *) from=./$from ;; esac
case $save in '' | /*) ;; *) save=./$save ;; esac
if [ -n "$from" ]; then
  work=$from
  for file in request.json path.txt headers.txt body.bin attestation.json; do
    [ -f "$work/$file" ] || { echo "there is no $file in $work" >&2 && exit 2; }
  done
else
  work=$scratch/answer
  [ -z "$save" ] || work=$save
  mkdir -p "$work" || exit 2
  case $path in
    /v1/images/generations) type=image ;;
    /v1/embeddings) type=embedding ;;
    *) type=text ;;
  esac
  demo=${DATA_DIR:-.data}/demo.json
  if [ -f "$demo" ]; then
    settings=$(tr -d '\n\r' <"$demo")
    [ -n "$base_url" ] || { member "$settings" base_url; base_url=$value; }
    [ -n "$api_key" ] || { member "$settings" api_key; api_key=$value; }
    [ -n "$model" ] || { member "$settings" "${type}_model"; model=$value; }
  fi
  [ -n "$base_url" ] && [ -n "$api_key" ] || { echo "give --base-url and --key, or start the demo first ($demo)" >&2 && usage; }
  base_url=${base_url%/}
  # In a file, because other users can see the arguments of a process.
  printf 'Authorization: Bearer %s\nContent-Type: application/json\n' "$api_key" >"$scratch/request-headers"

  if [ -z "$data" ]; then
    if [ -z "$model" ]; then
      download 'model list' "$base_url/v1/models" --max-time 30 -H "@$scratch/request-headers" -o "$scratch/models.json"
      # The object with `model_type` follows the object with the model's id.
      entry=$(awk -v RS='{' -v type="\"$type\"" '{ gsub(/[\n\r]/, "") } /^ *"id"/ { entry = $0 }
        /"model_type"/ && index($0, type) { print entry; exit }' "$scratch/models.json")
      member "$entry" id
      model=$value
      [ -n "$model" ] || no_answer "no $type model is available"
    fi
    case $path in
      /v1/completions) data="{\"model\":\"$model\",\"prompt\":\"Once upon a time\",\"max_tokens\":32}" ;;
      /v1/responses) data="{\"model\":\"$model\",\"input\":\"Say hello.\",\"max_output_tokens\":32}" ;;
      /v1/images/generations) data="{\"model\":\"$model\",\"prompt\":\"a red circle on a blue background\",\"size\":\"auto\"}" ;;
      /v1/embeddings) data="{\"model\":\"$model\",\"input\":\"Once upon a time\"}" ;;
      *) data="{\"model\":\"$model\",\"messages\":[{\"role\":\"user\",\"content\":\"Say hello.\"}],\"max_tokens\":32}" ;;
    esac
  fi
  if [ "$stream" = yes ]; then
    case $data in *'"stream"'*) ;; *) data="{\"stream\":true,${data#\{}" ;; esac
  fi
  printf %s "$data" >"$work/request.json"
  printf %s "$path" >"$work/path.txt"
  rm -f "$work/nonce.txt"
  if [ "$use_nonce" = yes ]; then
    nonce=$(openssl rand -base64 32)
    replace "${nonce%=}" / _
    replace "$value" + -
    printf %s "$value" >"$work/nonce.txt"
    printf 'X-Inference-Nonce: %s\n' "$value" >>"$scratch/request-headers"
  fi

  download 'response' "$base_url$path" --max-time 600 -H "@$scratch/request-headers" --data-binary "@$work/request.json" \
    -D "$work/headers.txt" -o "$work/body.bin"
  rm -f "$work"/image-?.bin
  if [ "$path" = /v1/images/generations ]; then
    image_members url "$work/body.bin" | while read -r url; do
      n=$((${n:-0} + 1))
      download "image $n" "$url" --fail --max-time 120 -o "$work/image-$n.bin"
    done || exit 3
  fi
  download 'attestation feed' "$base_url/v1/providers/attestation" --max-time 30 -o "$work/attestation.json"
fi

# Header names in lower case. The status has the name "HTTP", which cannot clash: header names here are in lower case.
headers=$(awk '/^HTTP\// { print "HTTP:" $2 }
  { at = index($0, ":"); value = substr($0, at + 1); gsub(/^[ \t]+|[ \t\r]+$/, "", value)
    if (at) print tolower(substr($0, 1, at - 1)) ":" value }' "$work/headers.txt")
header HTTP
status=$value
read_text "$work/path.txt"
endpoint=$value
if [ "$status" != 200 ]; then
  head -c 400 "$work/body.bin" >&2 && echo >&2
  no_answer "HTTP status $status"
fi
streamed=no
header content-type
case $value in text/event-stream*) streamed=yes ;; esac

# ---- --flip-byte

body=$work/body.bin
request=$work/request.json
if [ "$flip" = yes ]; then
  if [ "$streamed" = yes ]; then
    # A byte of the first event, because events are signed and keep-alive comments are not.
    at=$(awk '/^data: / { print at + 8; exit } { at += length($0) + 1 }' "$body")
  else
    at=$(($(wc -c <"$body") / 2))
  fi
  byte=$(od -An -tu1 -j "$at" -N 1 "$body" | tr -d ' ')
  if [ $((byte % 2)) -eq 0 ]; then byte=$((byte + 1)); else byte=$((byte - 1)); fi
  {
    head -c "$at" "$body"
    # shellcheck disable=SC2059 # The format is the byte.
    printf "\\$(printf %03o "$byte")"
    tail -c "+$((at + 2))" "$body"
  } >"$scratch/flipped.bin"
  body=$scratch/flipped.bin
  note "one bit of byte $at of the body was changed"
fi

# ---- the signed bytes, and the proof in headers or signature event

event=''
signed=$body
if [ "$streamed" = yes ]; then
  signed=$scratch/signed.bin
  # SSE parsers also end a line at a lone carriage return, so a comment could hide unsigned events. JSON never contains NUL.
  tr -d '\r\000' <"$body" | cmp -s - "$body" || fail 'stream framing: carriage return or NUL in the stream'
  # Writes the signed bytes and the bytes after the signature to files. Prints the first signed event and the signature, or the problem.
  : >"$signed"
  : >"$scratch/tail"
  proof=$(awk -v signed="$signed" -v tail="$scratch/tail" '
    # Without the spaces outside of strings. Events with escapes stay as they are.
    function compact(line,  parts, count, at, text) {
      if (line ~ /\\/) return line
      count = split(line, parts, "\"")
      for (at = 1; at <= count; at++) { if (at % 2) gsub(/ /, "", parts[at]); text = text (at > 1 ? "\"" : "") parts[at] }
      return text
    }
    # The blank line after a comment inside an event would end the event early, and clients would lose its name or first lines.
    pass == 1 && blank && $0 == "" { blank = 0; next }
    pass == 1 { blank = 0 }
    pass == 1 && /^:/ {
      if (open) exit inside = 1
      if (/[^ -~]/) unprintable = 1
      if (/^: inference-signature [{]/) { at = NR; event = $0 }
      blank = 1
      next
    }
    pass == 1 {
      open = $0 != ""
      if (/^data: [{].*"se_signature"/ && /"choices":\[\]/) { at = NR; event = $0 }
      next
    }
    FNR == 1 { blank = 0 }
    blank && $0 == "" { blank = 0; next }
    { blank = 0 }
    /^:/ { blank = 1; next }
    FNR < at { print >signed; if (first == "" && /^data: [{]/) first = $0 }
    FNR > at { print >tail }
    END {
      if (inside) print "stream framing: a comment inside an event"
      else if (unprintable) print "stream framing: a comment that is not printable ASCII"
      else if (!at) print "signature event: the stream has none"
      else { print compact(first); print event }
      exit inside || unprintable || !at
    }' pass=1 "$body" pass=2 "$body") || fail "$proof"
  # Providers write whole events: an optional event line, a data line, and a blank line. Clients may stop to read at other lines.
  LC_ALL=C awk '
    place == "" && /^event: [A-Za-z0-9_.]+$/ && length($0) <= 71 && !/^event: (error|response[.]failed)$/ { place = "name"; next }
    (place == "" || place == "name") && /^data: [{]/ { place = "data"; next }
    place == "data" && $0 == "" { place = ""; next }
    { other = 1; exit }
    END { exit (other || place != "") }' "$signed" || fail 'stream framing: the signed events hold another line, or end inside an event'
  first=${proof%%"$newline"*}
  event=${proof#*"$newline"}
  case $event in *\\*) fail 'signature event: it has escapes' ;; esac
  # Control characters, and characters that some parsers treat as line ends (U+0080 to U+009F, U+2028, U+2029).
  if printf %s "$event" | LC_ALL=C grep -aqE "$(printf '[\001-\037\177]|\302[\200-\237]|\342\200[\250\251]')"; then
    fail 'signature event: it has control characters or line breaks'
  fi
  once "$event" '"se_signature"' || fail 'signature event: a member is there twice'
  case $event in
    :*) # Clients ignore comments. Only the terminator of the Responses format may follow.
      printf 'data: [DONE]\n\n' | cmp -s - "$scratch/tail" || [ ! -s "$scratch/tail" ] || fail 'signature event: unsigned content follows it'
      ;;
    *) # The event itself is not signed, so it must contain nothing that a client would show or count.
      split_at '"'
      name='' within=no
      for part in $event; do
        if [ $within = yes ]; then
          name=$part within=no
          continue
        fi
        case ${part#"${part%%[! ]*}"} in
          :*)
            case $name in
              id | object | created | model | choices | usage | se_signature | response_hash | receipt | receipt_signature) ;;
              *) fail 'signature event: it has members of other events' ;;
            esac
            ;;
        esac
        within=yes
      done
      split_at_spaces
      once "$event" '"choices"' || fail 'signature event: a member is there twice'
      rest=$event
      while [ "$rest" != "${rest#*'"usage"'}" ]; do
        rest=${rest#*'"usage"'}
        case $rest in :null*) ;; *) fail 'signature event: it has unsigned usage' ;; esac
      done
      printf '\ndata: [DONE]\n\n' | cmp -s - "$scratch/tail" || printf '\n' | cmp -s - "$scratch/tail" ||
        fail 'signature event: unsigned content follows it'
      ;;
  esac
  member "$event" response_hash
  hash=$value
  member "$event" se_signature
  signature=$value
  member "$event" receipt
  receipt=$value
  member "$event" receipt_signature
  receipt_signature=$value
else
  header x-response-hash
  hash=$value
  header x-se-signature
  signature=$value
  header x-inference-receipt
  receipt=$value
  header x-inference-receipt-signature
  receipt_signature=$value
fi
header x-attestation-se-public-key
key=$value

# ---- public key: an uncompressed point of 65 bytes, after the DER prefix of P-256 public keys (RFC 5480)

# The receipt is base64url, without padding.
replace "$receipt" _ /
replace "$value" - +
case $((${#value} % 4)) in 2) value="$value==" ;; 3) value="$value=" ;; esac
decode key.raw "$key" signature.der "$signature" receipt.json "$value" receipt.der "$receipt_signature"
find_last "$octal" 'key.raw '
# Four characters for each byte. The first byte must be 4.
case ${#value}$value in '260\004'*) ;; *) fail 'public key: not base64 of an uncompressed P-256 point' ;; esac
{
  echo '-----BEGIN PUBLIC KEY-----'
  # shellcheck disable=SC2059 # The format is the bytes.
  printf '\060\131\060\023\006\007\052\206\110\316\075\002\001\006\010\052\206\110\316\075\003\001\007\003\102\000'"$value" | openssl base64
  echo '-----END PUBLIC KEY-----'
} >"$scratch/key.pem"
sha256 "$scratch/key.raw" "$signed" "$request"
hashes=$value
key_hash=${hashes%%"$newline"*}
request_hash=${hashes##*"$newline"}
signed_hash=${hashes#*"$newline"}
signed_hash=${signed_hash%"$newline"*}
# The first 32 of 64 digits.
provider=${key_hash%????????????????????????????????}

# ---- response hash and its signature

case $hash in *[!0-9a-f]*) hash='' ;; esac
[ "${#hash}" = 64 ] || fail 'response hash: missing or not 64 digits'
[ "$signed_hash" = "$hash" ] || fail 'response hash: the bytes received are not the bytes that were signed'
note "response hash $hash"
case $event in
  data:*)
    for name in id object created model; do
      raw "$first" $name
      of_first=$value
      raw "$event" $name
      [ -z "$value" ] || [ "$value" = "$of_first" ] || fail "signature event: its $name is not that of the events before it"
    done
    ;;
esac
printf %s "$hash" >"$scratch/hash"
[ -s "$scratch/signature.der" ] && signed_by_key "$scratch/signature.der" "$scratch/hash" || fail 'response signature'
note 'response signature by the enclave key'

# ---- the receipt: signature, members, and agreement with key, response and request

[ -s "$scratch/receipt.json" ] || fail 'receipt: missing or not base64url'
statement receipt || fail 'receipt signature'
# Canonical JSON (RFC 8785): no spaces, sorted and unique members, so that every parser reads the same values.
find_last "$octal" 'receipt.json '
case $value in *'\000'* | *'\012'* | *'\015'*) fail 'receipt: not canonical JSON' ;; esac
receipt_lines=$(lines 2 "$scratch/receipt.json") || fail 'receipt: not canonical JSON'
receipt_names=''
before=''
split_at "$newline"
for line in $receipt_lines; do
  name=${line#\"}
  name=${name%%\"*}
  case $line in "\"$name\":"*) ;; *) continue ;; esac
  # shellcheck disable=SC3012 # Every shell compares strings.
  [ -z "$receipt_names" ] || [ "x$before" \< "x$name" ] || fail 'receipt: not canonical JSON'
  before=$name
  receipt_names=$receipt_names$newline$name
done
split_at_spaces
of_receipt() { text_field "$receipt_lines" "$1"; }
names() {
  of_receipt "$1"
  [ "$value" = "$2" ] || fail "receipt: it names another $3"
}
known='completed_at endpoint finish_reason hidden_tokens job_id model overrides provider_id request_sha256 response_sha256 se_key_sha256 started_at usage v'
has_member() { case $receipt_names$newline in *"$newline$1$newline"*) ;; *) return 1 ;; esac; }
for name in $known; do has_member "$name" || fail "receipt: it lacks $name"; done
# `crit` lists members that a verifier must understand (RFC 7515 section 4.1.11).
if has_member crit; then
  field "$receipt_lines" crit
  [ "$value" = '[' ] || fail 'receipt: crit is not a list'
  inner "$receipt_lines" crit
  split_at "$newline"
  for name in $value; do
    name=${name%,}
    name=${name#\"}
    name=${name%\"}
    case " $known client_nonce image_sha256 engine weights_sha256 template_sha256 sampling " in
      *" $name "*) ;;
      *) fail "receipt: this script does not know $name, which it must" ;;
    esac
  done
  split_at_spaces
fi
# Version 2 names engine, weights, template and sampling; version 1 has none of these members.
has_member engine && version=2 || version=1
is "$receipt_lines" v $version || fail 'receipt: an unknown version, or members of another one'
for name in weights_sha256 template_sha256 sampling; do
  [ $version = 2 ] || ! has_member $name || fail 'receipt: an unknown version, or members of another one'
done
inner "$receipt_lines" usage
usage_lines=$value
for name in prompt_tokens completion_tokens total_tokens; do
  field "$usage_lines" $name
  is_integer "$value" || fail "receipt: its usage lacks $name"
done
field "$receipt_lines" completed_at
completed=$value
is_integer "$completed" || fail 'receipt: completed_at is not a time'
names se_key_sha256 "$key_hash" 'enclave key'
names provider_id "$provider" provider
names response_sha256 "$hash" response
names request_sha256 "$request_hash" request
names endpoint "$endpoint" endpoint
if [ -f "$work/nonce.txt" ]; then
  read_text "$work/nonce.txt"
  names client_nonce "$value" nonce
fi
header x-inference-job-id
[ -z "$value" ] || names job_id "$value" job
request_lines=$(lines 2 "$request")
text_field "$request_lines" model
replace "$value" '\/' /
asked=$value
of_receipt model
model=$value
# The member `models` of a request lists fallback models.
inner "$request_lines" models
replace "$value" '\/' /
case $value$newline in
  *"$newline\"$model\"$newline"* | *"$newline\"$model\",$newline"*) ;;
  *) [ -z "$asked" ] || names model "$asked" model ;;
esac
of_receipt finish_reason
case $value in
  stop | length | tool_calls) ;;
  cancelled) fail 'receipt: the answer was cancelled before its end' ;;
  *) fail 'receipt: an unknown finish_reason' ;;
esac

# ---- the data of the answer: JSON objects without an error. In a stream, "type" is the name of the event, as clients read one of both.
# The receipt's token counts: equal to the counts in the answer, and possible for the number of bytes.

if [ "$streamed" = no ]; then
  tr -d '\000' <"$signed" | cmp -s - "$signed" || fail 'answer: it is not a JSON object'
fi

for name in prompt completion total cached; do
  field "$usage_lines" ${name}_tokens
  eval "$name=\$value"
done
field "$receipt_lines" hidden_tokens
hidden=$value
sizes=$(wc -c "$signed" "$request")
bytes=${sizes#"${sizes%%[0-9]*}"}
request_bytes=${sizes#*"$newline"}
request_bytes=${request_bytes#"${request_bytes%%[0-9]*}"}
awk -v endpoint="$endpoint" -v stream="$streamed" -v prompt="$prompt" -v completion="$completion" -v total="$total" \
  -v cached="$cached" -v hidden="$hidden" -v bytes="${bytes%%[!0-9]*}" -v request="${request_bytes%%[!0-9]*}" '
  # Path of the next value, down to the depth of a usage: usage.prompt_tokens, response.usage.output_tokens
  function path(  at, text) { for (at = 1; at <= depth && at < 5; at++) text = text (at > 1 ? "." : "") (kind[at] == "{" ? key[at] : "[]"); return text }
  function of_usage(text) { return text ~ /^((message|response)\.)?usage$/ }
  function number(text, value,  name, partial) {
    if (endpoint == "/v1/messages/count_tokens") { if (text == "input_tokens" && value != prompt) bad = 1; return }
    if (text !~ /^((message|response)\.)?usage\./) return
    partial = text ~ /^message\./ && endpoint == "/v1/messages"
    name = text; sub(/^((message|response)\.)?usage\./, "", name)
    if (name == "prompt_tokens") { prompts++; if (value != prompt) bad = 1 }
    if (name == "completion_tokens" || (name == "output_tokens" && !partial)) { answers++; if (value != completion) bad = 1 }
    if (name == "output_tokens" && partial) answers++
    if (name == "total_tokens" && value != total) bad = 1
    if (name ~ /_details\.cached_tokens$/ && value != cached + 0) bad = 1
    if (name ~ /_details\.(reasoning|thinking)_tokens$/ && !partial && value != hidden) bad = 1
    if (name == "input_tokens" || (name ~ /^cache_(creation|read)_input_tokens$/ && endpoint == "/v1/messages")) {
      sum += value; if (name == "input_tokens") prompts++; summed = 1 } }
  function structure(text,  at, symbol, rest) {
    if (length(text) > 2000) gsub(/\[[-0-9.eE+, \t]*\]/, "[]", text)
    gsub(/[ \t\r]/, "", text)
    while (text != "") {
      symbol = substr(text, 1, 1); text = substr(text, 2)
      if (symbol == "{" || symbol == "[") {
        if (value_next) member("")
        if (symbol == "{" && value_next && of_usage(path())) { objects++; sum = 0; summed = 0 }
        else if (symbol == "[" && value_next && of_usage(path())) bad = 1
        kind[++depth] = symbol; key[depth] = ""; value_next = 0
      } else if (symbol == "}" || symbol == "]") {
        depth--; value_next = 0
        if (summed && of_usage(path())) { if (sum != prompt) bad = 1; summed = 0 }
      } else if (symbol == ":") { if (kind[depth] == "{") { key[depth] = last; value_next = 1; if (depth < 5 && last ~ /\\/) bad = depth == 1 || (depth == 2 && key[1] ~ /^(message|response|usage)$/) || path() ~ /^((message|response)\.)?usage\./ || bad } }
      else if (symbol == ",") value_next = 0
      else if (value_next) {
        rest = symbol; if (match(text, /^[-0-9.eE+a-z]+/)) { rest = rest substr(text, 1, RLENGTH); text = substr(text, RLENGTH + 1) }
        member(rest)
        if (rest ~ /^[0-9]+$/) { if (of_usage(path())) bad = 1; else number(path(), rest) }
        else if (rest != "null" && of_usage(path())) bad = 1
        value_next = 0
      }
    } }
  # The value of a member: a literal, a number, a string, or "" for an object or array
  function member(value) {
    if (depth > 2 || (depth == 2 && tolower(key[1]) != "response") || kind[depth] != "{") return
    if (key[depth] ~ /[\200-\377]/ || (tolower(key[depth]) == "error" && value != "null")) wrong = 1
    if (stream != "yes" || depth != 1 || tolower(key[1]) != "type") return
    types++
    if (key[1] != "type" || value != "\"" event "\"") wrong = 1
  }
  # Whether a text is a JSON object. Strings with control characters stay, so that it is none. More than 10000 levels, which the
  # library accepts, would take too long
  function is_object(text,  levels) {
    if (text ~ /[\001-\010\013\014\016-\037]/) return 0
    gsub(/\\(["\\\/bfnrt]|u[0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f])/, "_", text)
    if (text ~ /\\/) return 0
    gsub(/"[^"\001-\037]*"/, "\001", text)
    gsub(/-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?/, "0", text)
    gsub(/true|false|null/, "0", text)
    gsub(/[ \t\n\r]+/, "", text)
    # Each step replaces the innermost objects and arrays by a value.
    while (text != "0" && levels++ < 10000) if (!gsub(/\[([0\001](,[0\001])*)?\]|[{](\001:[0\001](,\001:[0\001])*)?[}]/, "0", text)) return 0
    return text == "0" && levels > 0
  }
  function json(text,  parts, count, at, inside, tail) {
    depth = 0; last = ""; value_next = 0; inside = 0; types = 0
    count = split(text, parts, "\"")
    for (at = 1; at <= count; at++) {
      if (!inside) { structure(parts[at]); inside = 1; last = ""; continue }
      if (length(last) < 200) last = last parts[at]
      # A quote after an odd number of backslashes is part of the string.
      tail = parts[at]; sub(/^.*[^\\]/, "", tail)
      if (length(tail) % 2) continue
      inside = 0
      if (value_next) { member("\"" last "\""); if (of_usage(path()) || (endpoint ~ /count_tokens$/ && path() == "input_tokens")) bad = 1; value_next = 0 }
    } }
  # An image in the prompt has at most 16384 tokens, and a request at most 20 images. Their names may be escaped.
  reading == "request" {
    gsub(/\\\\/, "//"); gsub(/\\u005[fF]/, "_"); gsub(/\\u0061/, "a"); gsub(/\\u0065/, "e"); gsub(/\\u0066/, "f")
    gsub(/\\u0067/, "g"); gsub(/\\u0069/, "i"); gsub(/\\u006[cC]/, "l"); gsub(/\\u006[dD]/, "m"); gsub(/\\u006[eE]/, "n")
    gsub(/\\u0070/, "p"); gsub(/\\u0072/, "r"); gsub(/\\u0074/, "t"); gsub(/\\u0075/, "u")
    images += gsub(/"(input_)?(image(_url)?|file)"/, "&")
    next
  }
  stream == "yes" && /^event: / { event = substr($0, 8); next }
  stream == "yes" && /^data: / {
    text = substr($0, 7)
    if (text !~ /^[{].*[}]$/ || text ~ /[\001-\037]/ || !is_object(text) || index(text, "\302\205") || index(text, "\342\200\250") || index(text, "\342\200\251")) wrong = 1
    json(text)
    if (types != (event != "")) wrong = 1
    event = text = ""
    next
  }
  stream == "yes" { next }
  { text = text $0 "\n" }
  END {
    if (stream != "yes") { if (text !~ /^[ \t\r\n]*[{]/ || !is_object(text)) wrong = 1; gsub(/\n/, " ", text); json(text) }
    if (wrong) exit 2
    if (images > 20) images = 20
    if (prompts < objects || (answers < objects && endpoint != "/v1/embeddings")) bad = 1
    exit bad || prompt == "" || completion == "" || total != prompt + completion || hidden + 0 > completion + 0 ||
      completion - hidden > bytes + 64 || prompt + 0 > request + 512 + images * 16384 }' reading=request "$request" reading=answer "$signed"
case $? in
  0) ;;
  2) fail 'answer: it is not JSON, has an error, or an event whose type is not its name' ;;
  *) fail 'receipt usage: it counts other tokens than the answer reports, or more than is possible' ;;
esac

note 'receipt by the enclave key, for this request and this response'

# ---- engine and weights, as the machine claims them (receipts of version 2)

[ -z "$weights" ] || names weights_sha256 "$weights" 'hash of weights'
of_receipt engine
if [ -n "$value" ]; then
  engine=$value
  of_receipt weights_sha256
  note "computed by $engine with weights $value"
fi

# ---- images: the receipt contains their hashes, in order

if [ "$streamed" = no ] && [ "$endpoint" = /v1/images/generations ]; then
  : >"$scratch/images"
  image_members b64_json "$signed" | while read -r image; do
    canonical "$image" && { printf %s "$image" | fold -w 64 && echo; } | openssl base64 -d >"$scratch/image" 2>/dev/null &&
      [ -s "$scratch/image" ] || exit 1
    sha256 "$scratch/image"
    printf '%s\n' "$value"
  done >"$scratch/images" || fail 'images: one is not base64'
  for image in "$work"/image-[1-9].bin; do
    [ ! -f "$image" ] || { sha256 "$image" && printf '%s\n' "$value" >>"$scratch/images"; }
  done
  if [ -s "$scratch/images" ]; then
    read_text "$scratch/images"
    replace "$newline$value" "$newline" ",$newline"
    images=${value#,}
    inner "$receipt_lines" image_sha256
    replace "$value" '"' ''
    [ "$value" = "$images" ] || fail 'receipt: it names another list of images'
    note "the receipt names the $(($(wc -l <"$scratch/images"))) image(s) that came"
  else
    note 'not checked: the images behind the URLs; they were not kept'
  fi
fi

# ---- the provider's attestation record: its key, and the statements that the key signed

# Saved evidence is verified as of the signed end of the job.
if [ -n "$from" ]; then moment=$completed; else moment=$(date +%s)000; fi
tolerance=120000
lines 2 "$work/attestation.json" >"$scratch/feed"
candidates=$(grep -F "\"provider_id\":\"$provider\"" "$scratch/feed")
record=''
split_at "$newline"
for candidate in $candidates; do
  record=$(printf %s "$candidate" | lines 3)
  text_field "$record" provider_id
  [ "$value" != "$provider" ] || break
  record=''
done
split_at_spaces
if ! is "$record" se_public_key "\"$key\""; then
  grep -qF "\"se_public_key\":\"$key\"" "$scratch/feed" || fail 'attestation feed: the key is not in it'
  [ -n "$record" ] || fail 'attestation feed: the provider is not in it'
  fail 'attestation feed: the key is not that of the provider'
fi
header x-provider-id
[ "$value" = "$provider" ] || fail 'provider id: it does not derive from the key'

contradicted() { fail "provider record: $1"; }
unsigned() { contradicted "the enclave key did not sign its $1 statement"; }
# signed_member LINES NAME: sets "payload" and "signature" to the texts of the signed statement in a member.
signed_member() {
  inner "$1" "$2"
  signed_lines=$value
  text_field "$signed_lines" payload
  payload=$value
  text_field "$signed_lines" signature
  signature=$value
}
inner "$record" last_challenge
transcript=$value
signed_member "$record" attestation_statement
set -- attestation.json "$payload" attestation.der "$signature"
signed_member "$transcript" statement
set -- "$@" challenge.json "$payload" challenge.der "$signature"
signed_member "$record" key_statement
decode "$@" key.json "$payload" key.der "$signature"
# Read before the signatures are verified, to start one process for all three.
statements=$(lines 2 "$scratch/attestation.json" "$scratch/challenge.json" "$scratch/key.json")

statement attestation || unsigned attestation
lines_of "$statements" "$scratch/attestation.json"
attestation=$value
for name in se_public_key chip_name hardware_model serial_number memory_gb key_protection; do
  same "$record" "$attestation" $name || contradicted "its attestation states another $name"
done
inner "$attestation" posture
posture=$value
is_simulated=false
! is "$record" key_protection '"software"' && is "$posture" secure_enclave true || is_simulated=true
is "$record" simulated $is_simulated || contradicted 'simulated is not what its attestation says'

is_attested=false
if ! is "$record" last_challenge null; then
  statement challenge || unsigned challenge
  lines_of "$statements" "$scratch/challenge.json"
  signed_challenge=$value
  for name in nonce session_id; do
    same "$transcript" "$signed_challenge" $name || contradicted "its challenge has another $name"
  done
  field "$signed_challenge" issued_at
  issued=$value
  is_integer "$issued" || contradicted 'its challenge has no time'
  age=$((moment - issued))
  # Twenty minutes. Challenges come every five minutes.
  if [ "$age" -le 1200000 ] && [ "$age" -ge -$tolerance ]; then
    inner "$signed_challenge" posture
    posture=$value
    is "$posture" sip_enabled true && is "$posture" secure_boot_enabled true && is_attested=true
  fi
fi
# A provider that misses a challenge is not attested, and keeps its last answer in the record.
! is "$record" attested true || [ $is_attested = true ] || contradicted 'attested is not what its newest challenge shows'
for name in secure_enclave sip_enabled secure_boot_enabled authenticated_root_enabled; do
  same "$record" "$posture" $name || contradicted "$name is not what it signed"
done

if ! is "$record" key_statement null; then
  statement key || unsigned key
  lines_of "$statements" "$scratch/key.json"
  key_statement=$value
  text_field "$key_statement" x25519_public_key
  decode x25519 "$value"
  find_last "$octal" 'x25519 '
  [ ${#value} = 128 ] || contradicted 'its sealing key is not 32 bytes'
  sha256 "$scratch/x25519" "$scratch/attestation.json"
  hashes=$value
  text_field "$key_statement" key_id
  case $hashes in "$value"*) [ ${#value} = 16 ] ;; *) false ;; esac ||
    contradicted 'the key_id of its sealing key is not the hash of the key'
  is "$key_statement" provider_id "\"$provider\"" || contradicted 'its sealing key is for another provider'
  is "$key_statement" attestation_sha256 "\"${hashes##*"$newline"}\"" || contradicted 'its sealing key is bound to another attestation'
  field "$key_statement" not_before
  not_before=$value
  field "$key_statement" not_after
  not_after=$value
  is_integer "$not_before" && is_integer "$not_after" && [ $((not_after - not_before)) -gt 0 ] &&
    [ $((not_after - not_before)) -le 3600000 ] || contradicted 'its sealing key is valid for longer than an hour, or never'
  [ "$not_before" -le $((moment + tolerance)) ] || contradicted 'its sealing key is not valid yet'
  [ "$not_after" -ge $((moment - tolerance)) ] || contradicted 'its sealing key has expired'
fi

# borne_out HEADER MEMBER: headers are not signed, so they must equal the record. They have question marks in place of
# characters outside ASCII, one or two for each.
borne_out() {
  header "$1"
  stated=$value
  text_field "$record" "$2"
  [ -z "$stated" ] || [ "$stated" = "$value" ] || [ "$(in_header "$stated")" = "$(in_header "$value")" ] ||
    fail "provider headers: the feed does not bear out $1"
}
# in_header TEXT: prints a text with one question mark for each run of question marks and bytes outside printable ASCII.
in_header() { printf '%s\n' "$1" | tr -c ' -~\n' '?' | tr -s '?'; }
borne_out x-provider-chip chip_name
borne_out x-provider-model hardware_model
borne_out x-provider-serial serial_number
borne_out x-attestation-device-serial serial_number
header x-provider-trust-level
[ "$value" != hardware ] || borne_out x-provider-trust-level trust_level
borne_out_flag() {
  header "$1"
  [ "$value" != true ] || is "$record" "$2" true || fail "provider headers: the feed does not bear out $1"
}
borne_out_flag x-provider-attested attested
borne_out_flag x-provider-mda-verified mda_verified
header x-provider-secure-enclave
[ -z "$value" ] || is "$record" secure_enclave "$value" || fail 'provider headers: the feed does not bear out x-provider-secure-enclave'
header x-provider-chip
chip=$value
header x-provider-trust-level
note "answered by provider $provider ($chip, trust level $value)"

# ---- evidence for the machine's hardware

if is "$record" mda_verified true; then
  inner "$(cat "$scratch/feed")" trust_anchor
  ! is "$value" simulated true || is_simulated=true
fi
if [ $is_simulated = true ]; then
  note 'SIMULATED machine: its key is kept in software, or certified by a test authority. Nothing is proved about its hardware.'
  [ -z "$required" ] || fail "required evidence: the machine is simulated, and --require $required was given"
else
  note 'CLAIMED Secure Enclave: the machine says so of itself; a program could say the same.'
  ! is "$record" mda_verified true ||
    note "the feed has certificates of its manufacturer, which this script does not check: inference-verify response does"
  [ "$required" != hardware ] || fail 'required evidence: this script checks no certificates; use inference-verify response --require hardware'
fi

echo verified
