# For scripts that draw pictures: browse. They have made the folder $work.
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
  echo "$(basename "$0"): no Chromium to draw the pictures with (make test-packages installs it); nothing is changed" >&2
  exit 1
}

browse() { # PAGE OPTION...: Chromium without a window, in a profile of its own
  local page=$1
  shift
  "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run --disable-background-networking \
    --virtual-time-budget=5000 --user-data-dir="$work/profile" "$@" "file://$page" 2> /dev/null
}
